/*
 * nf-switch-bench: cycles per packet of programs of the switch, beside each other.
 *
 *     nf-switch-bench --in X.pcap --program a.spec,a.entries --program b.spec,b.entries
 *
 * Packets with a label come from the first link, others from the world; ports are polled in turn.
 * Before it measures, the bench sends each packet through all programs, and ends unless the packet
 * leaves all of them at the same port with the same bytes.
 *
 * The programs take turns in random order, rounds of 256 packets that are copied before time is
 * taken. Reported are medians and quartiles over rounds; a ratio is that to the last program in the
 * same round.
 */
#include "rack/switch_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "core/command_line.h"
#include "core/packet.h"
#include "core/random.h"
#include "cycles/measuring.h"
#include "rack/entries.h"
#include "rack/spec.h"
#include "rack/switch_port_stubs.h"
#include "run/captures.h"
#include "run/start.h"

static int receive(void *port_pointer, struct rte_swx_pkt *packet)
{
	const struct bench_port *port = port_pointer;
	struct bench *bench = port->bench;
	struct bench_end *end = &bench->ends[port->number];
	struct rte_mbuf *mbuf;

	if (end->entered == end->size || bench->in_flight == bench->options.in_flight)
		return 0;
	mbuf = end->round[end->entered++];
	fill_packet(mbuf, packet);
	bench->in_flight++;
	return 1;
}

/* From links behind the first one. */
static int receive_nothing(void *port, struct rte_swx_pkt *packet)
{
	(void)port, (void)packet;
	return 0;
}

static void leave(void *port_pointer, struct rte_swx_pkt *packet)
{
	const struct bench_port *port = port_pointer;
	struct bench *bench = port->bench;

	bench->in_flight--;
	bench->left++;
	bench->left_at = port->number;
	bench->last = *packet;
}

static bool register_ports(struct rte_swx_pipeline *pipeline)
{
	struct rte_swx_port_in_ops in = {port_create, port_destroy, receive, port_no_in_stats};
	struct rte_swx_port_in_ops silent = {port_create, port_destroy, receive_nothing, port_no_in_stats};
	struct rte_swx_port_out_ops out = {
		.create = port_create,
		.free = port_destroy,
		.pkt_tx = leave,
		.pkt_fast_clone_tx = port_no_clone,
		.pkt_clone_tx = port_no_shortened_clone,
		.stats_read = port_no_out_stats,
	};

	return rte_swx_pipeline_port_in_type_register(pipeline, "in", &in) == 0 &&
	       rte_swx_pipeline_port_in_type_register(pipeline, "silent", &silent) == 0 &&
	       rte_swx_pipeline_port_out_type_register(pipeline, "out", &out) == 0;
}

/* Make ports as nf-switch gives them to a program; packets end where they leave. */
static bool bench_make_ports(struct bench *bench, struct rte_swx_pipeline *pipeline)
{
	const uint32_t n = bench->options.links + 1;
	bool good = register_ports(pipeline);

	/* the number of ports in is a power of two */
	for (uint32_t i = 0; good && i < rte_align32pow2(n); i++)
		good = rte_swx_pipeline_port_in_config(pipeline, i,
						       i < RTE_MIN(n, ENDS) ? "in" : "silent",
						       &bench->ports[i]) == 0;
	for (uint32_t i = 0; good && i <= n; i++)
		good = rte_swx_pipeline_port_out_config(pipeline, i, "out", &bench->ports[i]) == 0;
	return good;
}

#define POOL 16383
#define PACKET_BYTES (RTE_PKTMBUF_HEADROOM + 2048 + 128)
#define ZEROS_BEHIND 128
#define NSH_TYPE 0x894f
#define WARM_UP 64
#define MEMORY_MB 1024

enum { DONE = 0, FAILED = 1, BAD_INPUT = 2 };

/* An exit status, after printing why if it is not 0. */
static int load(struct bench *bench, unsigned int at)
{
	const struct bench_program *files = &bench->options.programs[at];
	struct bench_run *run = &bench->runs[at];
	struct spec *spec = spec_read(files->spec);
	char name[16];
	bool built;

	if (!spec)
		return BAD_INPUT;
	snprintf(name, sizeof(name), "switch%u", at);
	run->cycles = calloc(bench->options.rounds, sizeof(*run->cycles));
	run->ratios = calloc(bench->options.rounds, sizeof(*run->ratios));
	if (!run->cycles || !run->ratios ||
	    rte_swx_pipeline_config(&run->pipeline, name, 0) != 0 ||
	    !bench_make_ports(bench, run->pipeline)) {
		fprintf(stderr, "nf-switch-bench: no memory for a pipeline\n");
		spec_free(spec);
		return FAILED;
	}
	built = !spec_has_arrivals(spec) &&
		spec_build(spec, run->pipeline, bench->options.links + 1);
	if (spec_has_arrivals(spec))
		fprintf(stderr,
			"%s: has a rate limit (t_max), which needs packet times\n"
			"hint: compile the chain without t_max to measure it\n",
			files->spec);
	spec_free(spec);
	if (!built)
		return BAD_INPUT;
	run->control = rte_swx_ctl_pipeline_create(run->pipeline);
	if (!run->control) {
		fprintf(stderr, "nf-switch-bench: no memory for tables\n");
		return FAILED;
	}
	return entries_load(files->entries, run->pipeline, run->control) ? DONE : BAD_INPUT;
}

static bool make_pool(struct bench *bench)
{
	bench->pool =
		rte_pktmbuf_pool_create("packets", POOL, 0, 0, PACKET_BYTES, SOCKET_ID_ANY);
	for (unsigned int i = 0; bench->pool && i < ENDS; i++)
		if (rte_pktmbuf_alloc_bulk(bench->pool, bench->ends[i].round, ROUND) != 0)
			return false;
	return bench->pool;
}

static bool is_labelled(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *)->ether_type ==
	       rte_cpu_to_be_16(NSH_TYPE);
}

/* Keep a packet that enters the pipeline. */
static void keep(struct bench *bench, struct rte_mbuf *mbuf)
{
	struct bench_end *end;

	if (mbuf->nb_segs > 1 || mbuf->pkt_len < sizeof(struct rte_ether_hdr) ||
	    packet_parse(mbuf).type == PACKET_MALFORMED) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	end = &bench->ends[is_labelled(mbuf) ? 1 : 0];
	end->packets[end->n++] = mbuf;
}

/* An exit status, after printing why if it is not 0. */
static int read_packets(struct bench *bench)
{
	struct capture_reader *reader = capture_reader_open(bench->options.in, "the switch");
	enum capture_next next = CAPTURE_END;
	uint64_t time_ns;

	if (!reader)
		return BAD_INPUT;
	for (unsigned int i = 0; i < MOST_PACKETS; i++) {
		struct rte_mbuf *mbuf = NULL;

		next = capture_reader_peek(reader, &time_ns);
		if (next == CAPTURE_PACKET)
			mbuf = capture_reader_take(reader, bench->pool);
		if (!mbuf)
			break;
		keep(bench, mbuf);
	}
	capture_reader_close(reader);
	if (next != CAPTURE_FAULT && bench->ends[0].n + bench->ends[1].n > 0)
		return DONE;
	fprintf(stderr, "%s: no packet enters the switch\n", bench->options.in);
	return BAD_INPUT;
}

/* The next packets of a port. */
static void copy_packets(struct bench_end *end, unsigned int n)
{
	end->size = n;
	end->entered = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct rte_mbuf *from = end->packets[(end->first + i) % end->n];
		struct rte_mbuf *to = end->round[i];

		rte_pktmbuf_reset(to);
		memcpy(rte_pktmbuf_append(to, from->data_len),
		       rte_pktmbuf_mtod(from, const char *), from->data_len);
		memset(rte_pktmbuf_mtod_offset(to, char *, to->data_len), 0,
		       RTE_MIN(rte_pktmbuf_tailroom(to), ZEROS_BEHIND));
	}
}

static void run_all(struct bench *bench, const struct bench_run *run)
{
	const unsigned int n = bench->ends[0].size + bench->ends[1].size;

	bench->left = bench->in_flight = 0;
	while (bench->left < n)
		rte_swx_pipeline_run(run->pipeline, ROUND);
}

/* Cycles per packet of a round. */
static double round_of(struct bench *bench, const struct bench_run *run)
{
	struct bench_end *world = &bench->ends[0], *link = &bench->ends[1];
	const unsigned int of_world = ROUND * world->n / (world->n + link->n);
	uint64_t start;

	copy_packets(world, of_world);
	copy_packets(link, ROUND - of_world);
	start = rte_rdtsc_precise();
	run_all(bench, run);
	return (double)(rte_rdtsc_precise() - start) / ROUND;
}

/* Whether the next packet of a port leaves all programs in the same way. */
static bool is_same(struct bench *bench, struct bench_end *end)
{
	static uint8_t bytes[PACKET_BYTES];
	const uint32_t drops = bench->options.links + 1;
	uint32_t port = 0, length = 0;
	bool same = true;

	for (unsigned int i = 0; i < bench->options.n_programs; i++) {
		const uint8_t *found;
		uint32_t n;

		for (unsigned int k = 0; k < ENDS; k++)
			bench->ends[k].size = bench->ends[k].entered = 0;
		copy_packets(end, 1);
		run_all(bench, &bench->runs[i]);
		found = bench->last.pkt + bench->last.offset;
		n = bench->left_at == drops ? 0 : RTE_MIN(bench->last.length, sizeof(bytes));
		if (i > 0)
			same &= bench->left_at == port && n == length &&
				memcmp(found, bytes, n) == 0;
		port = bench->left_at;
		length = n;
		memcpy(bytes, found, n);
	}
	return same;
}

/* Whether all programs do the same; false after printing for which packet they do not. */
static bool compare(struct bench *bench)
{
	for (unsigned int i = 0; i < ENDS; i++) {
		struct bench_end *end = &bench->ends[i];

		for (end->first = 0; end->first < end->n; end->first++)
			if (!is_same(bench, end)) {
				fprintf(stderr,
					"nf-switch-bench: the programs do not do the same with "
					"packet %u of port %u\n",
					end->first + 1, i);
				return false;
			}
	}
	return true;
}

static void measure(struct bench *bench)
{
	const unsigned int n = bench->options.n_programs;
	uint64_t random = 1;

	for (unsigned int i = 0; i < WARM_UP * n; i++)
		round_of(bench, &bench->runs[i % n]);
	for (unsigned int round = 0; round < bench->options.rounds; round++) {
		const unsigned int first = random_below(&random, n);

		for (unsigned int i = 0; i < n; i++) {
			struct bench_run *run = &bench->runs[(first + i) % n];

			run->cycles[round] = round_of(bench, run);
		}
		for (unsigned int i = 0; i < n; i++)
			bench->runs[i].ratios[round] =
				bench->runs[i].cycles[round] / bench->runs[n - 1].cycles[round];
		for (unsigned int i = 0; i < ENDS; i++)
			bench->ends[i].first += bench->ends[i].size;
	}
}

static void report(struct bench *bench)
{
	const unsigned int rounds = bench->options.rounds;

	printf("program,packets,in_flight,cycles_per_packet,cycles_q1,cycles_q3,ratio,ratio_q1,"
	       "ratio_q3\n");
	for (unsigned int i = 0; i < bench->options.n_programs; i++) {
		const struct bench_run *run = &bench->runs[i];

		printf("\"%s\",%u,%u,%.1f,%.1f,%.1f,%.3f,%.3f,%.3f\n",
		       bench->options.programs[i].spec, bench->ends[0].n + bench->ends[1].n,
		       bench->options.in_flight, quantile(run->cycles, rounds, 0.5),
		       quantile(run->cycles, rounds, 0.25), quantile(run->cycles, rounds, 0.75),
		       quantile(run->ratios, rounds, 0.5), quantile(run->ratios, rounds, 0.25),
		       quantile(run->ratios, rounds, 0.75));
	}
}

/* An exit status. */
static int work(struct bench *bench)
{
	int result = DONE;

	for (uint32_t i = 0; i < MOST_PORTS; i++)
		bench->ports[i] = (struct bench_port){bench, i};
	for (unsigned int i = 0; result == DONE && i < bench->options.n_programs; i++)
		result = load(bench, i);
	if (result != DONE)
		return result;
	if (!make_pool(bench)) {
		fprintf(stderr, "nf-switch-bench: no memory for packets\n");
		return FAILED;
	}
	result = read_packets(bench);
	if (result != DONE)
		return result;
	if (!compare(bench))
		return FAILED;
	measure(bench);
	report(bench);
	return fflush(stdout) == 0 ? DONE : FAILED;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	int result = bench_options_read(&bench.options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (start_eal("nf-switch-bench", MEMORY_MB) < 0)
		return FAILED;
	result = work(&bench);
	/* pipelines are left to the end of the process: DPDK frees wildcard tables twice */
	for (unsigned int i = 0; i < BENCH_MOST_PROGRAMS; i++) {
		free(bench.runs[i].cycles);
		free(bench.runs[i].ratios);
	}
	rte_mempool_free(bench.pool);
	rte_eal_cleanup();
	return result;
}
