/*
 * nf-server-bench: cycles per packet of a server's chain beside a loop that is written by hand.
 *
 *     nf-server-bench --chain server.chain --entry 1,255
 *
 * The loop has the same instances of the same functions: it takes the label off each packet, lets
 * each function process the burst in turn, puts the next label on, and frees the packets. The chain
 * does so by its tables. Packets are made in memory, with labels, before time is taken.
 *
 * Both take turns in random order, rounds of about a millisecond on the same traffic. Of several
 * such rounds, a batch, the median counts: it is that of rounds which nothing disturbed. Reported
 * are medians and quartiles over batches.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "core/chain.h"
#include "core/command_line.h"
#include "core/nsh.h"
#include "core/random.h"
#include "cycles/measuring.h"
#include "run/chain_file.h"
#include "run/start.h"

struct bench_options {
	const char *chain;
	bool chosen; /* the entry */
	struct service entry;
	unsigned int flows, packet_size;
};

static const char help[] =
	"Usage: nf-server-bench --chain FILE [--entry PATH,INDEX] [--flows N] [--packet-size N]\n"
	"\n"
	"Measures cycles per packet of a server's chain on one core, from the label that comes to\n"
	"the label that leaves, beside a loop written by hand over the same functions; prints a\n"
	"table (CSV). Functions behind the entry must follow each other without branches.\n"
	"\n"
	"  --chain FILE         the chain, see nf-server\n"
	"  --entry PATH,INDEX   where packets enter (the first entry of the file)\n"
	"  --flows N            concurrent flows (1000)\n"
	"  --packet-size N      bytes of a frame with its checksum, without label (1500)\n";

static const char *take_entry(void *state, char *value)
{
	struct bench_options *options = state;
	unsigned int path, index;
	char rest;

	options->chosen = true;
	if (sscanf(value, "%u,%u%c", &path, &index, &rest) != 2 || path >> 24 || index > UINT8_MAX)
		return "is not PATH,INDEX";
	options->entry = (struct service){path, (uint8_t)index};
	return NULL;
}

static int bench_options_read(struct bench_options *options, int argc, char **argv)
{
	const struct command_option known[] = {
		{"chain", .needed = true, .text = &options->chain},
		{"entry", .take = take_entry},
		{"flows", .number = &options->flows, .least = 1, .most = 1000000},
		{"packet-size", .number = &options->packet_size, .least = 1, .most = 1518},
		{0},
	};
	const struct command_line line = {"nf-server-bench", help, known, options};

	*options = (struct bench_options){.flows = 1000, .packet_size = 1500};
	return command_line_read(&line, argc, argv);
}

#define MOST_FUNCTIONS 16
#define BATCHES 15
#define ROUNDS 21 /* in a batch */
#define MOST_BURSTS 64
#define ROUND_US 1000

/* The loop by hand: its functions, and the label behind them. */
struct hand {
	unsigned int n;
	struct nf *functions[MOST_FUNCTIONS];
	struct service entry, exit;
	bool labelled; /* packets leave with `exit` */
	struct nf_out out[2];
};

struct bench {
	struct bench_options options;
	struct chain_file file;
	struct chain *chain;
	struct hand hand;
	struct traffic *traffic;
	struct rte_mempool *spare;
	uint64_t now_us;
	double bursts; /* in a round */
	double chain_cycles[BATCHES], hand_cycles[BATCHES], ratios[BATCHES], label_cycles[BATCHES];
};

static void take(void *state, unsigned int core, enum chain_end end, struct rte_mbuf **packets,
		 uint16_t n)
{
	(void)state;
	(void)core;
	(void)end;
	rte_pktmbuf_free_bulk(packets, n);
}

static void run_chain(struct bench *bench, struct rte_mbuf **packets, uint16_t n)
{
	chain_enter(bench->chain, packets, n, bench->now_us);
	chain_step(bench->chain, 0, bench->now_us);
}

/* What one would write for these functions alone. */
static void run_by_hand(struct bench *bench, struct rte_mbuf **packets, uint16_t n)
{
	struct hand *hand = &bench->hand;
	struct rte_mbuf **burst = packets;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct service service;

		if (likely(nsh_pop(packets[i], &service) == NSH_POPPED &&
			   service.path == hand->entry.path && service.index == hand->entry.index))
			packets[kept++] = packets[i];
		else
			rte_pktmbuf_free(packets[i]);
	}
	for (unsigned int i = 0; i < hand->n && kept > 0; i++) {
		struct nf_out *out = &hand->out[i % 2];

		hand->functions[i]->now_us = bench->now_us;
		out->n = 0;
		nf_process(hand->functions[i], burst, kept, out);
		burst = out->packets;
		kept = (uint16_t)RTE_MIN(out->n, (uint32_t)NF_BURST);
		if (unlikely(out->n > kept))
			rte_pktmbuf_free_bulk(burst + kept, out->n - kept);
	}
	for (uint16_t i = 0; hand->labelled && i < kept; i++)
		nsh_push(burst[i], hand->exit);
	rte_pktmbuf_free_bulk(burst, kept);
}

/* The label alone: off and on again. */
static void run_labels(struct bench *bench, struct rte_mbuf **packets, uint16_t n)
{
	struct service service = bench->hand.entry;

	for (uint16_t i = 0; i < n; i++)
		nsh_pop(packets[i], &service);
	for (uint16_t i = 0; i < n; i++)
		nsh_push(packets[i], service);
}

typedef void (*runner)(struct bench *bench, struct rte_mbuf **packets, uint16_t n);

/* Cycles per packet of a round. */
static double round_of(struct bench *bench, runner run)
{
	uint64_t cycles = 0, packets = 0;

	for (int burst = 0; burst < (int)bench->bursts; burst++) {
		struct rte_mbuf *received[NF_BURST];
		const uint16_t n = traffic_receive(bench->traffic, received, NF_BURST);
		uint64_t begin;

		bench->now_us += BURST_US;
		for (uint16_t i = 0; i < n; i++)
			nsh_push(received[i], bench->hand.entry);
		begin = rte_rdtsc();
		run(bench, received, n);
		cycles += rte_rdtsc() - begin;
		packets += n;
		if (run == run_labels)
			rte_pktmbuf_free_bulk(received, n);
	}
	return (double)cycles / (double)RTE_MAX(packets, 1u);
}

static void warm(struct bench *bench)
{
	const uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * WARM_MS;
	const double room = (double)rte_get_tsc_hz() / 1e6 * ROUND_US / NF_BURST;

	bench->bursts = 1;
	for (uint32_t n = 0; n < 12 * bench->options.flows && rte_rdtsc() < end; n += NF_BURST)
		round_of(bench, run_chain);
	bench->bursts = 8;
	bench->bursts = RTE_MAX(RTE_MIN(room / round_of(bench, run_chain), MOST_BURSTS), 1.0);
}

static void measure_batch(struct bench *bench, unsigned int batch, uint64_t *random)
{
	double chain[ROUNDS], hand[ROUNDS], label[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const bool first = random_below(random, 2);

		if (first)
			chain[i] = round_of(bench, run_chain);
		hand[i] = round_of(bench, run_by_hand);
		if (!first)
			chain[i] = round_of(bench, run_chain);
		label[i] = round_of(bench, run_labels);
	}
	bench->chain_cycles[batch] = quantile(chain, ROUNDS, 0.5);
	bench->hand_cycles[batch] = quantile(hand, ROUNDS, 0.5);
	bench->label_cycles[batch] = quantile(label, ROUNDS, 0.5);
	bench->ratios[batch] = bench->chain_cycles[batch] / bench->hand_cycles[batch];
}

static void measure(struct bench *bench)
{
	uint64_t random = 1;

	warm(bench);
	for (unsigned int batch = 0; batch < BATCHES; batch++)
		measure_batch(bench, batch, &random);
}

static void print(const char *before, double *values, int digits)
{
	printf("%s%.*f,%.*f,%.*f", before, digits, quantile(values, BATCHES, 0.5), digits,
	       quantile(values, BATCHES, 0.25), digits, quantile(values, BATCHES, 0.75));
}

static void report(struct bench *bench)
{
	printf("functions,flows,packet_size,cycles_per_packet,cycles_q1,cycles_q3,by_hand,"
	       "by_hand_q1,by_hand_q3,ratio,ratio_q1,ratio_q3,label_cycles,label_q1,label_q3\n\"");
	for (unsigned int i = 0; i < bench->hand.n; i++)
		printf("%s%s", i ? "," : "", bench->hand.functions[i]->kind->name);
	printf("\",%u,%u,", bench->options.flows, bench->options.packet_size);
	print("", bench->chain_cycles, 1);
	print(",", bench->hand_cycles, 1);
	print(",", bench->ratios, 3);
	print(",", bench->label_cycles, 1);
	putchar('\n');
}

/* The only edge behind a function; NULL if there are several, or none. */
static const struct chain_edge *only_edge(const struct chain_spec *spec, int from)
{
	const struct chain_edge *only = NULL;

	for (unsigned int i = 0; i < spec->n_edges; i++) {
		if (spec->edges[i].from != from)
			continue;
		if (only)
			return NULL;
		only = &spec->edges[i];
	}
	return only;
}

static const struct chain_edge *entry_edge(const struct bench *bench)
{
	const struct chain_spec *spec = &bench->file.spec;
	const struct service *entry = &bench->options.entry;

	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from == CHAIN_OUT_NSH &&
		    (!bench->options.chosen || (edge->service.path == entry->path &&
						edge->service.index == entry->index)))
			return edge;
	}
	return NULL;
}

/* The functions from the entry to the exit; false after printing why there is no such way. */
static bool follow(struct bench *bench)
{
	const struct chain_edge *edge = entry_edge(bench);
	struct hand *hand = &bench->hand;

	if (edge)
		hand->entry = edge->service;
	if (edge && share_value(edge->share) < 1)
		edge = NULL;
	while (edge && edge->to >= 0 && hand->n < MOST_FUNCTIONS) {
		hand->functions[hand->n++] = chain_function(bench->chain, (unsigned int)edge->to);
		edge = only_edge(&bench->file.spec, edge->to);
	}
	if (edge && edge->to < 0) {
		hand->labelled = edge->to == CHAIN_OUT_NSH;
		hand->exit = edge->service;
		return true;
	}
	fprintf(stderr, "nf-server-bench: %s: no way without branches from this entry to an exit\n",
		bench->options.chain);
	return false;
}

/* All functions on one core. False after printing why. */
static bool open_all(struct bench *bench)
{
	const struct traffic_profile profile = {.flows = bench->options.flows,
						.packet_size = (uint16_t)bench->options.packet_size,
						.mtbr = 600};
	struct chain_config config = {.sink = take};

	if (!start_accelerators(&bench->file.spec, config.accelerators))
		return false;
	bench->file.spec.n_cores = 1;
	for (unsigned int i = 0; i < bench->file.spec.n_functions; i++)
		bench->file.spec.functions[i].core = 0;
	bench->spare = rte_pktmbuf_pool_create("spare", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					       SOCKET_ID_ANY);
	config.spare = bench->spare;
	if (bench->spare)
		bench->chain = chain_create(&bench->file.spec, &config);
	bench->traffic = traffic_create(&profile, 1);
	return bench->chain && bench->traffic;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	int result = bench_options_read(&bench.options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (!chain_file_read(&bench.file, bench.options.chain))
		return 2;
	if (start_eal("nf-server-bench", 4096) < 0)
		return 1;
	result = open_all(&bench) ? 0 : 1;
	if (result == 0 && !follow(&bench))
		result = 2;
	if (result == 0) {
		measure(&bench);
		report(&bench);
		chain_flush(bench.chain, bench.now_us);
	}
	chain_destroy(bench.chain);
	traffic_destroy(bench.traffic);
	rte_mempool_free(bench.spare);
	chain_file_free(&bench.file);
	rte_eal_cleanup();
	return result;
}
