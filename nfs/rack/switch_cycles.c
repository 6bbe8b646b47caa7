/*
 * Cycles per packet of a program: packets of the capture enter from the world, batch after batch,
 * and end where they leave the pipeline. Only the pipeline is measured, not reading or copying.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "core/packet.h"
#include "rack/switch.h"
#include "rack/switch_port_stubs.h"

#define BATCH 256
#define MOST_PACKETS 4096
#define WARM_UP 16

struct batches {
	const struct switch_options *options;
	struct rte_mbuf *packets[MOST_PACKETS]; /* as they came */
	struct rte_mbuf *batch[BATCH];          /* copies */
	unsigned int n, first;                  /* packets, and which of them begins the batch */
	unsigned int entered, left;             /* of the batch */
};

static struct batches batches;

static int receive(void *port, struct rte_swx_pkt *packet)
{
	struct rte_mbuf *mbuf;

	(void)port;
	if (batches.entered == BATCH ||
	    batches.entered - batches.left >= batches.options->in_flight)
		return 0;
	mbuf = batches.batch[batches.entered++];
	port_give(mbuf, packet);
	return 1;
}

static int receive_nothing(void *port, struct rte_swx_pkt *packet)
{
	(void)port, (void)packet;
	return 0;
}

static void end(void *port, struct rte_swx_pkt *packet)
{
	(void)port, (void)packet;
	batches.left++;
}

bool switch_cycles_ports_make(struct switch_state *state)
{
	batches.options = state->options;
	return switch_ports_register(state, "from world", receive) &&
	       switch_ports_register(state, "from link", receive_nothing) &&
	       switch_ports_register_out(state, "to world", end) &&
	       switch_ports_register_out(state, "to link", end) &&
	       switch_ports_register_out(state, "drop", end) &&
	       switch_ports_register_out(state, "nowhere", end) && switch_ports_configure(state);
}

/* Read the packets that would enter the pipeline. False after printing why not. */
static bool read_packets(struct switch_state *state)
{
	uint64_t time_ns;

	while (batches.n < MOST_PACKETS &&
	       capture_reader_peek(state->in, &time_ns) == CAPTURE_PACKET) {
		struct rte_mbuf *mbuf = capture_reader_take(state->in, state->pool);

		if (!mbuf)
			return false;
		if (mbuf->nb_segs == 1 && packet_parse(mbuf).type != PACKET_MALFORMED)
			batches.packets[batches.n++] = mbuf;
		else
			rte_pktmbuf_free(mbuf);
	}
	if (batches.n > 0)
		return true;
	fprintf(stderr, "%s: no packet enters the pipeline\n", state->options->in);
	return false;
}

/* Cycles of one batch, per packet. */
static double run_batch(struct switch_state *state)
{
	uint64_t begin;

	for (unsigned int i = 0; i < BATCH; i++) {
		const struct rte_mbuf *from = batches.packets[(batches.first + i) % batches.n];
		struct rte_mbuf *to = batches.batch[i];

		rte_pktmbuf_reset(to);
		memcpy(rte_pktmbuf_append(to, from->data_len),
		       rte_pktmbuf_mtod(from, const char *), from->data_len);
	}
	batches.first = (batches.first + BATCH) % batches.n;
	batches.entered = batches.left = 0;
	begin = rte_rdtsc_precise();
	while (batches.left < BATCH)
		rte_swx_pipeline_run(state->pipeline, BATCH);
	return (double)(rte_rdtsc_precise() - begin) / BATCH;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print(const double *cycles, unsigned int n)
{
	printf("{\"program\": \"nf-switch\", \"packets\": %u, \"batches\": %u, "
	       "\"cycles_per_packet\": {\"p10\": %.1f, \"median\": %.1f, \"p90\": %.1f}}\n",
	       batches.n, n, cycles[n / 10], cycles[n / 2], cycles[n - 1 - n / 10]);
}

bool switch_cycles_measure(struct switch_state *state, const volatile sig_atomic_t *stop)
{
	const unsigned int n = state->options->cycles;
	double *cycles = malloc(n * sizeof(*cycles));
	unsigned int done = 0;

	if (!cycles || !read_packets(state) ||
	    rte_pktmbuf_alloc_bulk(state->pool, batches.batch, BATCH) != 0) {
		free(cycles);
		return false;
	}
	for (unsigned int i = 0; i < WARM_UP && !*stop; i++)
		run_batch(state);
	while (done < n && !*stop)
		cycles[done++] = run_batch(state);
	qsort(cycles, done, sizeof(*cycles), compare);
	if (done > 0)
		print(cycles, done);
	free(cycles);
	rte_pktmbuf_free_bulk(batches.batch, BATCH);
	rte_pktmbuf_free_bulk(batches.packets, batches.n);
	return done > 0 && fflush(stdout) == 0;
}
