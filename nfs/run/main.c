/*
 * nf-run: gives packets to a network function, or a chain of them, and writes what comes out.
 *
 *     nf-run --nf NAT --in inside.pcap --out translated.pcap
 *
 * All functions run on one core, whatever cores a chain file names: the same packets in give the
 * same packets out. The testbed runs chains on several. With --backend the function runs on a
 * device, and its worker's thread is the one that is in the chain; the packets are the same, too.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "accelerators/accelerator.h"
#include "core/clock.h"
#include "core/command_line.h"
#include "run/device.h"
#include "run/ends.h"
#include "run/fates.h"
#include "run/interruption.h"
#include "run/options.h"
#include "run/start.h"

#define SPARE_PACKETS 16383
#define PROGRESS_NS 1000000000ull

struct run {
	const struct options *options;
	struct chain *chain;
	struct source *inside, *outside;
	struct sink *sinks[2]; /* by enum chain_end */
	struct fates *fates;
	struct rte_mempool *spare;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct device *device; /* NULL: the function in C */
	bool recorded;         /* packets come from captures */
	uint64_t now_us;       /* of the chain */
	uint64_t now_ns;       /* of the packets in it, which may go back */
	uint64_t clock_us;     /* of the source, which does not */
	uint64_t now_ahead_us, clock_ahead_us; /* of the times of packets */
	uint64_t clock_ns;     /* of its packets */
	uint64_t received, left[2];
	uint64_t begin_ns, printed_ns;
	atomic_bool failed; /* to write */
	bool bad;           /* input */
};

static void take(void *state, unsigned int core, enum chain_end end, struct rte_mbuf **packets,
		 uint16_t n)
{
	struct run *run = state;

	(void)core;
	run->left[end] += n;
	for (uint16_t i = 0; run->fates && i < n; i++)
		fates_left(run->fates, packets[i], end);
	if (!sink_send(run->sinks[end], packets, n, run->now_ns, run->recorded))
		run->failed = true;
}

/* Packets of one time enter the chain; on the worker's thread, if there is a device. */
static void pass(struct run *run, struct rte_mbuf **packets, uint16_t n, uint64_t time_ns)
{
	run->now_ns = time_ns;
	clock_follow(&run->now_us, &run->now_ahead_us, time_ns / 1000);
	chain_enter(run->chain, packets, n, run->now_us);
	chain_step(run->chain, 0, run->now_us);
}

static void pass_one(void *state, struct rte_mbuf *packet, uint64_t time_ns)
{
	pass(state, &packet, 1, time_ns);
}

/* 0, or an exit status after printing why. */
static int open_chain(struct run *run, struct chain_spec *spec)
{
	struct chain_config config = {.sink = take, .state = run};

	run->spare = rte_pktmbuf_pool_create("spare", SPARE_PACKETS, 0, 0,
					     RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (run->options->device.backend)
		device_prepare(spec);
	if (!run->spare || !start_accelerators(spec, run->accelerators)) {
		fprintf(stderr, "nf-run: no memory for packets or accelerators\n");
		return FAILED;
	}
	spec->n_cores = 1;
	for (unsigned int i = 0; i < spec->n_functions; i++) {
		struct chain_function *function = &spec->functions[i];

		function->core = 0;
		if (function->kind->executions & NF_RUN_TO_COMPLETION)
			function->execution = NF_RUN_TO_COMPLETION;
	}
	config.spare = run->spare;
	memcpy(config.accelerators, run->accelerators, sizeof(config.accelerators));
	run->chain = chain_create(spec, &config);
	if (!run->chain)
		return BAD_INPUT;
	run->fates = run->options->each ? fates_create(run->chain) : NULL;
	if (run->options->each && !run->fates)
		return FAILED;
	if (run->options->device.backend)
		run->device =
			device_open(&run->options->device, run->chain, pass_one, run);
	return run->options->device.backend && !run->device ? FAILED : 0;
}

/* The first function whose result depends on payloads; NULL if there is none. */
static const char *reader_of_payloads(const struct chain_spec *spec)
{
	for (unsigned int i = 0; i < spec->n_functions; i++) {
		const struct nf_kind *kind = spec->functions[i].kind;

		if (kind->reads_payloads || kind->alters || kind->accelerators)
			return kind->name;
	}
	return NULL;
}

/* The format of the output: that of the input. False after printing that there are two. */
static bool choose_format(const struct run *run, struct capture_format *format)
{
	const struct capture_format other =
		source_format(run->outside ? run->outside : run->inside);

	*format = source_format(run->inside ? run->inside : run->outside);
	if (format->link != other.link) {
		fprintf(stderr, "nf-run: --in and --outside must be captures of one link type\n");
		return false;
	}
	format->nanoseconds |= other.nanoseconds;
	format->snap_length = RTE_MAX(format->snap_length, other.snap_length);
	return true;
}

/* 0, or an exit status after printing why. */
static int open_ends(struct run *run)
{
	const struct options *options = run->options;

	const char *reads = reader_of_payloads(&options->chain.spec);
	struct capture_format format = {0};

	if (options->in && !(run->inside = source_open(options->in, NF_INSIDE, reads)))
		return BAD_INPUT;
	if (options->outside && !(run->outside = source_open(options->outside, NF_OUTSIDE, reads)))
		return BAD_INPUT;
	if (run->inside && run->outside &&
	    source_is_recorded(run->inside) != source_is_recorded(run->outside)) {
		fprintf(stderr, "nf-run: --in and --outside must both be captures, or neither\n");
		return BAD_INPUT;
	}
	run->recorded = source_is_recorded(run->inside ? run->inside : run->outside);
	if (run->recorded && !choose_format(run, &format))
		return BAD_INPUT;
	run->sinks[CHAIN_FORWARD] = sink_open(options->out, run->recorded ? &format : NULL);
	run->sinks[CHAIN_BACK] = sink_open(options->back, run->recorded ? &format : NULL);
	return run->sinks[CHAIN_FORWARD] && run->sinks[CHAIN_BACK] ? 0 : BAD_INPUT;
}

static void close_all(struct run *run)
{
	fates_destroy(run->fates);
	device_close(run->device);
	chain_destroy(run->chain);
	source_close(run->inside);
	source_close(run->outside);
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		accelerator_destroy(run->accelerators[kind]);
	rte_mempool_free(run->spare);
}

static void print_progress(struct run *run)
{
	const uint64_t now_ns = clock_ns();

	if (now_ns - run->printed_ns < PROGRESS_NS || !isatty(STDERR_FILENO))
		return;
	run->printed_ns = now_ns;
	fprintf(stderr, "\r%" PRIu64 " packets", run->received);
}

/* Buffers of received packets that are in the chain. */
static unsigned int in_use(const struct run *run)
{
	return source_in_use(run->inside) + source_in_use(run->outside);
}

/* Packets go to the device. */
static void submit(struct run *run, struct rte_mbuf **packets, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		device_submit(run->device, packets[i], run->clock_ns);
	if (run->fates)
		device_drain(run->device);
}

static void give(struct run *run, struct rte_mbuf **packets, uint16_t n)
{
	if (run->device)
		submit(run, packets, n);
	else
		pass(run, packets, n, run->clock_ns);
}

static void enter(struct run *run, struct rte_mbuf **packets, uint16_t n)
{
	const uint32_t number = (uint32_t)run->received;
	unsigned int before;

	for (uint16_t i = 0; i < n; i++)
		metadata_of(packets[i])->number = number + i;
	run->received += n;
	if (!run->fates) {
		give(run, packets, n);
		return;
	}
	before = in_use(run) - packets[0]->nb_segs;
	if (!fates_begin(run->fates, number))
		run->failed = true;
	if (run->failed) {
		rte_pktmbuf_free_bulk(packets, n);
		return;
	}
	if (run->device)
		submit(run, packets, 1);
	else {
		run->now_ns = run->clock_ns;
		chain_enter(run->chain, packets, 1, run->clock_us);
	}
	fates_end(run->fates, number, in_use(run) > before);
}

/* The source whose packet is next: of recorded ones that with the earlier time. */
static struct source *next_source(struct run *run, unsigned int round)
{
	if (!run->inside || !run->outside)
		return run->inside ? run->inside : run->outside;
	if (source_is_recorded(run->inside))
		return source_next_ns(run->outside, &run->bad) <
				       source_next_ns(run->inside, &run->bad)
			       ? run->outside
			       : run->inside;
	return round % 2 ? run->outside : run->inside;
}

static bool is_over(const struct run *run)
{
	const struct options *options = run->options;

	return interrupted || run->failed || run->bad ||
	       (options->count && run->received >= options->count) ||
	       (options->seconds > 0 &&
		(double)(clock_ns() - run->begin_ns) >= 1e9 * options->seconds);
}

static void loop(struct run *run)
{
	const struct options *options = run->options;
	bool ended = false;

	run->begin_ns = run->printed_ns = clock_ns();
	for (unsigned int round = 0; !ended && !is_over(run); round++) {
		struct source *source = next_source(run, round);
		struct rte_mbuf *packets[NF_BURST];
		uint64_t time_ns = clock_ns();
		uint16_t most = options->each ? 1 : NF_BURST, n;

		if (options->count)
			most = (uint16_t)RTE_MIN((uint64_t)most, options->count - run->received);
		n = source_receive(source, packets, most, &time_ns, &ended, &run->bad);
		run->clock_ns = ended ? run->clock_ns : time_ns;
		clock_follow(&run->clock_us, &run->clock_ahead_us, run->clock_ns / 1000);
		if (!run->device)
			run->now_us = run->clock_us;
		if (n > 0)
			enter(run, packets, n);
		else if (!ended && !run->device)
			chain_step(run->chain, 0, run->now_us);
		if (round % 1024 == 0)
			print_progress(run);
	}
	if (run->device && !device_stop(run->device))
		fprintf(stderr, "nf-run: the device was given up: later packets went on in C\n");
	run->now_us = run->clock_us;
	chain_flush(run->chain, run->now_us);
}

static void print_counters(const struct nf *nf)
{
	for (unsigned int i = 0; i < nf->kind->n_counters; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", nf->kind->counters[i].name,
		       nf->counters[i]);
}

static void print_report(const struct run *run)
{
	printf("{\"received\": %" PRIu64 ", \"out\": %" PRIu64 ", \"back\": %" PRIu64
	       ", \"lost\": %" PRIu64 ", \"interrupted\": %s, \"functions\": [",
	       run->received, run->left[CHAIN_FORWARD], run->left[CHAIN_BACK],
	       chain_lost(run->chain), interrupted ? "true" : "false");
	for (unsigned int i = 0; i < chain_functions(run->chain); i++) {
		const struct chain_counts counts = chain_counts_of(run->chain, i);
		const struct nf *nf = chain_function(run->chain, i);

		printf("%s{\"name\": \"%s\", \"nf\": \"%s\", \"entered\": %" PRIu64
		       ", \"sent\": %" PRIu64 ", \"back\": %" PRIu64 ", \"counters\": {",
		       i ? ", " : "", chain_function_name(run->chain, i), nf->kind->name,
		       counts.entered, counts.sent, counts.sent_back);
		print_counters(nf);
		printf("}}");
	}
	printf("]}\n");
}

static int finish(struct run *run)
{
	bool keep = !run->failed && !run->bad;

	if (keep && run->fates)
		keep = fates_print(run->fates, stdout);
	if (keep) {
		print_report(run);
		keep = fflush(stdout) == 0;
		if (!keep)
			perror("nf-run: stdout");
	}
	for (int end = 0; end < 2; end++)
		keep &= sink_close(run->sinks[end], keep);
	if (run->bad)
		return BAD_INPUT;
	return !keep ? FAILED : interrupted ? INTERRUPTED : DONE;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct run run = {.options = &options};
	int result = options_read(&options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (start_eal("nf-run", options.memory_mb) < 0)
		return FAILED;
	catch_interrupts();
	result = open_chain(&run, &options.chain.spec);
	if (result == 0)
		result = open_ends(&run);
	if (result == 0) {
		loop(&run);
		result = finish(&run);
	} else {
		sink_close(run.sinks[CHAIN_FORWARD], false);
		sink_close(run.sinks[CHAIN_BACK], false);
	}
	close_all(&run);
	chain_file_free(&options.chain);
	rte_eal_cleanup();
	return result;
}
