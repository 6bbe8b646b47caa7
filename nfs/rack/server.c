/*
 * nf-server: plays a server of a rack, between a switch or SmartNIC and the chain's functions.
 *
 *     nf-server --chain server.chain --link s0.link --report s0.json
 *
 * The thread of core 0 receives, lets packets enter the chain, and sends; the threads of other
 * cores process what reaches their functions. No packet is lost without being counted.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "accelerators/accelerator.h"
#include "core/chain.h"
#include "core/clock.h"
#include "core/command_line.h"
#include "rack/control.h"
#include "rack/link.h"
#include "rack/server_cores.h"
#include "rack/server_options.h"
#include "rack/server_update.h"
#include "run/start.h"

#define SERVER_NAME "nf-server"
#define SERVER_PACKETS 8191
#define MOST_INSIDE_US 3600000000u /* of a packet */

/* Packets freed because of the link, not of the chain. */
enum server_loss {
	SERVER_TOO_LONG,    /* for a slot of the link */
	SERVER_SENT_BACK,   /* by a function, to where the link has no address */
	SERVER_INTERRUPTED, /* could not be sent any more */
	SERVER_LOSSES,
};

struct server_cores;

struct server {
	struct server_options *options;
	struct chain *chain;
	struct server_cores *cores;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct rte_mempool *pool;  /* for packets from the link */
	struct rte_mempool *spare; /* for those that functions make */
	struct control control;
	struct server_preparing preparing;
	struct server_update *update; /* if one is prepared */
	struct links *links;
	int link;
	uint64_t now_us;         /* of a clock by the times of packets, which other threads read */
	uint64_t ahead_us;       /* of the times of packets ... */
	uint64_t before_us;      /* ... and before the last time by which one was wrong */
	struct rte_mbuf *buffer; /* for the next packet */
	bool starved;            /* there was none */
	struct rte_mbuf *next;   /* a packet of a later time than the burst before it */
	uint64_t next_us;
	uint64_t lost[SERVER_LOSSES];
	bool broken; /* the link */
};

static const char *const names[] = {
	[SERVER_TOO_LONG] = "too_long",
	[SERVER_SENT_BACK] = "sent_back",
	[SERVER_INTERRUPTED] = "interrupted",
};

/* Packets that no edge behind a Match takes: it counts them when it frees them. */
static uint64_t unmatched_by(const struct nf *nf)
{
	const struct nf_kind *kind = nf->kind;
	bool drops = false;

	if (strcmp(kind->name, "Match") != 0)
		return 0;
	for (unsigned int i = 0; i < kind->n_parameters; i++)
		if (strcmp(kind->parameters[i].name, "drop_unmatched") == 0)
			drops = nf->settings[i] == 1;
	for (unsigned int i = 0; drops && i < kind->n_counters; i++)
		if (strcmp(kind->counters[i].name, "unmatched") == 0)
			return nf->counters[i];
	return 0;
}

/* How often each rule decided, by its number; those that never did are left out. */
static void write_rules(const struct nf *nf, FILE *stream)
{
	const char *before = ", \"rules\": {";

	for (uint32_t i = 0; nf->rule_counts && i < nf->n_rules; i++) {
		if (nf->rule_counts[i] == 0)
			continue;
		fprintf(stream, "%s\"%" PRIu32 "\": %" PRIu64, before, i + 1, nf->rule_counts[i]);
		before = ", ";
	}
	if (before[2] == '\0')
		fputc('}', stream);
}

static void write_function(const struct chain *chain, unsigned int at, FILE *stream)
{
	const struct nf *nf = chain_function(chain, at);
	const struct chain_counts counts = chain_counts_of(chain, at);
	/* a packet that matches no edge has passed the function, and is dropped behind it */
	const uint64_t sent = counts.sent + counts.sent_back + unmatched_by(nf);

	fprintf(stream,
		"%s{\"name\": \"%s\", \"nf\": \"%s\", \"entered\": %" PRIu64 ", \"sent\": %" PRIu64
		", \"dropped\": %" PRIu64 ", \"counters\": {",
		at ? ", " : "", chain_function_name(chain, at), nf->kind->name, counts.entered,
		sent, counts.entered > sent ? counts.entered - sent : 0);
	for (unsigned int i = 0; i < nf->kind->n_counters; i++)
		fprintf(stream, "%s\"%s\": %" PRIu64, i ? ", " : "", nf->kind->counters[i].name,
			nf->counters[i]);
	fputs("}", stream);
	write_rules(nf, stream);
	fputc('}', stream);
}

static bool print_report(FILE *stream, const void *state, bool interrupted)
{
	const struct server *server = state;
	const struct chain *chain = server->chain;
	uint64_t unmatched = 0;

	fprintf(stream,
		"{\"program\": \"%s\", \"interrupted\": %s, \"received\": {\"link\": %" PRIu64
		"}, \"sent\": {\"link\": %" PRIu64 "}, \"functions\": [",
		SERVER_NAME, interrupted ? "true" : "false",
		links_received(server->links, server->link),
		links_sent(server->links, server->link));
	for (unsigned int i = 0; i < chain_functions(chain); i++) {
		write_function(chain, i, stream);
		unmatched += unmatched_by(chain_function(chain, i));
	}
	fprintf(stream, "], \"dropped\": {\"unmatched\": %" PRIu64, unmatched);
	for (int loss = 0; loss < CHAIN_LOSSES; loss++)
		fprintf(stream, ", \"%s\": %" PRIu64, chain_loss_name((enum chain_loss)loss),
			chain_lost_by(chain, (enum chain_loss)loss));
	for (int loss = 0; loss < SERVER_LOSSES; loss++)
		fprintf(stream, ", \"%s\": %" PRIu64, names[loss], server->lost[loss]);
	return fputs("}}\n", stream) >= 0;
}

/* Write what was done as one line of JSON. False after printing why. */
static bool server_report(const struct server *server, bool interrupted)
{
	return control_write_report(SERVER_NAME, server->options->report, print_report, server,
				    interrupted);
}

/* A packet of any link in one segment, with room for headers. */
#define BUFFER_BYTES (2 * RTE_PKTMBUF_HEADROOM + LINK_SLOT_BYTES)
/* On each core: all together must leave some for others. */
#define CACHED_PACKETS (SERVER_PACKETS / (4 * CHAIN_MOST_CORES))

enum { DONE = 0, FAILED = 1, BAD_INPUT = 2, INTERRUPTED = 130 };

static volatile sig_atomic_t stop;
static bool interrupted; /* the same, for the chain */

static void interrupt(int signal)
{
	(void)signal;
	stop = 1;
	__atomic_store_n(&interrupted, true, __ATOMIC_RELAXED);
}

/* When a packet came in, by its own time; the clock may have been otherwise ahead of it then. */
static uint64_t time_of(const struct server *server, const struct rte_mbuf *packet)
{
	const uint64_t now_us = server->now_us - server->ahead_us;
	const uint64_t time_us = metadata_time_us(packet, now_us);

	return time_us > now_us || now_us - time_us > MOST_INSIDE_US
		       ? metadata_time_us(packet, server->now_us - server->before_us)
		       : time_us;
}

/* Send packets to the link, and free them; on the thread of core 0. */
static void server_send(struct server *server, enum chain_end end, struct rte_mbuf **packets,
			uint16_t n)
{
	static uint8_t all[LINK_MOST_BYTES];

	for (uint16_t i = 0; i < n; i++) {
		const uint32_t length = rte_pktmbuf_pkt_len(packets[i]);
		struct link_message message = {
			.length = length,
			.time_us = time_of(server, packets[i]),
		};

		if (end == CHAIN_BACK) {
			server->lost[SERVER_SENT_BACK]++;
			continue;
		}
		if (length > LINK_MOST_BYTES) {
			server->lost[SERVER_TOO_LONG]++;
			continue;
		}
		message.bytes = rte_pktmbuf_read(packets[i], 0, length, all);
		if (server->broken || !links_send(server->links, server->link, &message)) {
			server->broken = true;
			server->lost[SERVER_INTERRUPTED]++;
		}
	}
	rte_pktmbuf_free_bulk(packets, n);
}

static void take(void *state, enum chain_end end, struct rte_mbuf **packets, uint16_t n)
{
	server_send(state, end, packets, n);
}

static struct rte_mempool *make_pool(const char *name)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, SERVER_PACKETS, CACHED_PACKETS, 0,
							   BUFFER_BYTES, SOCKET_ID_ANY);

	if (!pool)
		fprintf(stderr, "nf-server: no memory for packets: %s\nhint: --memory-mb\n",
			rte_strerror(rte_errno));
	return pool;
}

/* 0, or an exit status after printing why. */
static int open_chain(struct server *server)
{
	struct server_options *options = server->options;
	struct chain_spec *spec = &server->options->chain.spec;
	struct chain_config config = {
		.sink = server_cores_take,
		.interrupt = &interrupted,
		.timed = true,
		.counts_rules = true,
		.begins_at_random = options->control,
	};
	const struct server_cores_config of_cores = {
		.n = spec->n_cores,
		.packets = 2 * SERVER_PACKETS,
		.pins = options->pinned ? options->pins : NULL,
		.now_us = &server->now_us,
		.sink = take,
		.state = server,
	};

	server->pool = make_pool("link");
	server->spare = make_pool("spare");
	server->cores = server_cores_create(&of_cores);
	if (!server->pool || !server->spare || !server->cores ||
	    !start_accelerators(spec, server->accelerators))
		return FAILED;
	for (unsigned int i = 0; i < spec->n_functions; i++)
		if (spec->functions[i].kind->executions & NF_RUN_TO_COMPLETION)
			spec->functions[i].execution = NF_RUN_TO_COMPLETION;
	config.state = server->cores;
	config.spare = server->spare;
	memcpy(config.accelerators, server->accelerators, sizeof(config.accelerators));
	server->chain = chain_create(spec, &config);
	return server->chain ? 0 : BAD_INPUT;
}

/* What a burst may end with. */
struct ending {
	enum link_kind kind; /* LINK_PACKET: nothing but packets came */
	uint64_t round;      /* of a LINK_FLUSH */
};

/* 0, or an exit status after printing why. */
static int open_link(struct server *server)
{
	server->links = links_create(&stop);
	if (!server->links) {
		fprintf(stderr, "nf-server: no memory for links\n");
		return FAILED;
	}
	links_stay(server->links, server->options->control);
	server->link = links_open(server->links, server->options->link, LINK_B);
	return server->link >= 0 ? 0 : BAD_INPUT;
}

static void close_all(struct server *server)
{
	server_cores_stop(server->cores);
	server_update_free(server_preparing_end(&server->preparing));
	server_update_free(server->update);
	chain_destroy(server->chain);
	server_cores_destroy(server->cores);
	links_destroy(server->links);
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		accelerator_destroy(server->accelerators[kind]);
	rte_mempool_free(server->pool);
	rte_mempool_free(server->spare);
	chain_file_free(&server->options->chain);
}

/* Put a message's bytes into the buffer that waits for it. */
static struct rte_mbuf *packet_of(struct server *server, const struct link_message *message)
{
	struct rte_mbuf *packet = server->buffer;

	server->buffer = NULL;
	memcpy(rte_pktmbuf_append(packet, (uint16_t)message->length), message->bytes,
	       message->length);
	metadata_begin(packet, NF_INSIDE, 0);
	metadata_of(packet)->begun = (uint32_t)message->time_us;
	return packet;
}

/* Let the clock follow the time of a packet; other threads read it. */
static void follow(struct server *server, uint64_t time_us)
{
	const uint64_t ahead_us = server->ahead_us;
	uint64_t now_us = server->now_us;

	clock_follow(&now_us, &server->ahead_us, time_us);
	if (server->ahead_us != ahead_us)
		server->before_us = ahead_us;
	__atomic_store_n(&server->now_us, now_us, __ATOMIC_RELAXED);
}

/* Receive packets of one time, so that the clock of functions is that of each packet. */
static uint16_t receive(struct server *server, struct rte_mbuf **packets,
			struct ending *ending)
{
	uint64_t time_us = server->next_us;
	uint16_t n = 0;

	ending->kind = LINK_PACKET;
	if (server->next)
		packets[n++] = server->next;
	server->next = NULL;
	while (n < NF_BURST && !server->next) {
		struct link_message message;

		if (!server->buffer)
			server->buffer = rte_pktmbuf_alloc(server->pool);
		server->starved = !server->buffer;
		if (server->starved || !links_receive(server->links, server->link, &message))
			break;
		if (message.kind != LINK_PACKET) {
			ending->kind = message.kind;
			if (message.kind == LINK_FLUSH)
				ending->round = link_round(&message);
			break;
		}
		packets[n] = packet_of(server, &message);
		if (n > 0 && message.time_us != time_us) {
			server->next = packets[n];
			server->next_us = message.time_us;
		} else {
			time_us = message.time_us;
			n++;
		}
	}
	if (n > 0)
		follow(server, time_us);
	return n;
}

/* Make room when all buffers are in use: functions hold them, or other cores are behind. */
static void make_room(struct server *server)
{
	if (server->starved && chain_is_quiet(server->chain))
		server_cores_flush(server->cores);
}

/* Answer a round; false if that is not possible any more. */
static bool answer(struct server *server, uint64_t round)
{
	server_cores_flush(server->cores);
	return !server->broken && links_send_flush(server->links, server->link, round);
}

/* Do what is ordered. */
static void obey(struct server *server, enum control_order order)
{
	if (order == CONTROL_PREPARE) {
		server_update_free(server->update);
		server->update = NULL;
		server->preparing.chain = server->chain;
		server->preparing.spec = &server->options->chain.spec;
		if (!server_preparing_begin(&server->preparing))
			control_answer(false);
	} else if (order == CONTROL_SWAP && server->update) {
		server_cores_flush(server->cores);
		server_cores_pause(server->cores, true);
		server_update_apply(server->update, server->chain, &server->options->chain);
		server->update = NULL;
		server_cores_pause(server->cores, false);
		control_answer(true);
	} else if (order == CONTROL_REPORT)
		control_answer(server_report(server, false));
	else if (order == CONTROL_END)
		links_stay(server->links, false); /* nobody starts the switch again */
	else
		control_answer(false);
}

/* Until the link ends. False if it breaks, or the program is interrupted. */
static bool loop(struct server *server)
{
	bool idle = false;

	for (;;) {
		/* orders wait while tables are read, so that each is answered in turn */
		const enum control_order order = server->preparing.running
							 ? CONTROL_NONE
							 : control_next(&server->control, idle);
		struct rte_mbuf *packets[NF_BURST];
		struct ending ending;
		const uint16_t n = receive(server, packets, &ending);
		unsigned int moved = n;

		if (order != CONTROL_NONE)
			obey(server, order);
		if (server->preparing.running && atomic_load(&server->preparing.done)) {
			server->update = server_preparing_end(&server->preparing);
			control_answer(server->update != NULL);
		}
		if (n > 0)
			chain_enter(server->chain, packets, n, server->now_us);
		moved += chain_step(server->chain, 0, server->now_us);
		moved += server_cores_collect(server->cores);
		if (ending.kind == LINK_END)
			return true;
		if (ending.kind == LINK_FLUSH && !answer(server, ending.round))
			return false;
		if (server->broken || stop)
			return false;
		make_room(server);
		idle = moved == 0 && ending.kind == LINK_PACKET;
		if (idle && !links_idle(server->links))
			return false;
	}
}

/* Run until the end, and report. Returns the exit status. */
static int run(struct server *server)
{
	bool ended;

	pthread_getaffinity_np(pthread_self(), sizeof(server->preparing.processors),
			       &server->preparing.processors);
	if (!server_cores_start(server->cores, server->chain))
		return FAILED;
	ended = links_meet(server->links);
	if (ended && server->options->control)
		control_begin(&server->control);
	ended = ended && loop(server);
	rte_pktmbuf_free(server->buffer);
	if (server->next)
		chain_enter(server->chain, &server->next, 1, server->now_us);
	server_cores_flush(server->cores);
	server_cores_stop(server->cores);
	if (!server_report(server, stop != 0))
		return FAILED;
	if (ended && !server->broken)
		return DONE;
	return stop ? INTERRUPTED : FAILED;
}

int main(int argc, char **argv)
{
	static struct server_options options;
	const struct sigaction on_signal = {.sa_handler = interrupt};
	struct server server = {.options = &options};
	int result = server_options_read(&options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (start_eal("nf-server", options.memory_mb) < 0)
		return FAILED;
	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
	result = metadata_register() < 0 ? FAILED : open_chain(&server);
	if (result == 0)
		result = open_link(&server);
	if (result == 0)
		result = run(&server);
	/* tables that are read for nobody may take seconds yet */
	if (server.preparing.running)
		_exit(result);
	close_all(&server);
	rte_eal_cleanup();
	return result;
}
