#include "cycles/runner.h"

#include <stdio.h>

#include <rte_cycles.h>

#include "cycles/measuring.h"

#define BEGIN_BURSTS 8 /* of a round, not timed: the chain's memory returns to the caches */
#define MOST_BURSTS 64
#define ROUND_MS 1

/* Packets as they enter. */
struct burst {
	uint16_t n;
	struct rte_mbuf *packets[NF_BURST];
	uint16_t data_off[NF_BURST], data_len[NF_BURST];
};

static struct burst burst_of(struct rte_mbuf **packets, uint16_t n)
{
	struct burst burst = {.n = n};

	for (uint16_t i = 0; i < n; i++) {
		burst.packets[i] = packets[i];
		burst.data_off[i] = packets[i]->data_off;
		burst.data_len[i] = rte_pktmbuf_data_len(packets[i]);
	}
	return burst;
}

static bool is_unchanged(const struct burst *burst, const struct rte_mbuf *packet)
{
	for (uint16_t i = 0; i < burst->n; i++)
		if (burst->packets[i] == packet)
			return burst->data_off[i] == packet->data_off &&
			       burst->data_len[i] == rte_pktmbuf_data_len(packet);
	return false;
}

static struct effect effect_on(const struct burst *burst, const struct rte_mbuf *packet)
{
	const struct metadata *metadata = metadata_of_const(packet);

	return (struct effect){
		.parsed = metadata->data_len != 0 &&
			  metadata->data_len == rte_pktmbuf_data_len(packet) &&
			  metadata->data_off == packet->data_off,
		.changed = !is_unchanged(burst, packet),
	};
}

/* Free what leaves the chain. */
static void take(void *state, unsigned int core, enum chain_end end, struct rte_mbuf **packets,
		 uint16_t n)
{
	struct runner *runner = state;

	(void)core;
	(void)end;
	if (unlikely(runner->watched != NULL))
		runner->effect = effect_on(runner->watched, packets[0]);
	rte_pktmbuf_free_bulk(packets, n);
}

/* The functions one after the other, with their default settings. */
static struct chain_spec spec_of(const struct runner *runner)
{
	struct chain_spec spec = {.n_functions = runner->n, .n_edges = runner->n, .n_cores = 1};

	for (unsigned int i = 0; i < runner->n; i++) {
		struct chain_function *function = &spec.functions[i];
		const bool last = i + 1 == runner->n;

		function->kind = runner->kinds[i];
		function->execution = NF_RUN_TO_COMPLETION;
		snprintf(function->name, sizeof(function->name), "%u", i);
		spec.edges[i] = (struct chain_edge){
			.from = (int)i, .to = last ? CHAIN_OUT : (int)i + 1, .share = {1, 1}};
	}
	return spec;
}

bool runner_create(struct runner *runner, struct rte_mempool *spare)
{
	const struct chain_spec spec = spec_of(runner);
	struct nf_config of_nf = config_of("Null", spare);
	struct chain_config config = {.spare = spare, .sink = take, .state = runner};
	bool made;

	memcpy(config.accelerators, of_nf.accelerators, sizeof(config.accelerators));
	if (chain_spec_check(&spec) > 0)
		return false;
	runner->chain = chain_create(&spec, &config);
	made = runner->chain != NULL;
	for (unsigned int i = 0; made && i < runner->n_makers; i++) {
		of_nf.name = runner->makers[i]->name;
		runner->making[i] = nf_create(&of_nf, NULL, 0);
		made = runner->making[i] != NULL;
	}
	if (!made)
		runner_destroy(runner);
	return made;
}

void runner_destroy(struct runner *runner)
{
	if (runner->chain)
		chain_flush(runner->chain, runner->now_us);
	chain_destroy(runner->chain);
	runner->chain = NULL;
	for (unsigned int i = 0; i < runner->n_makers; i++) {
		nf_destroy(runner->making[i]);
		runner->making[i] = NULL;
	}
}

/* Receive a burst as the first function is to get it. */
static uint16_t receive(struct runner *runner, struct traffic *traffic, struct rte_mbuf **packets)
{
	static struct nf_out out;
	uint16_t n = traffic_receive(traffic, packets, NF_BURST);

	for (unsigned int i = 0; i < runner->n_makers; i++) {
		runner->making[i]->now_us = runner->now_us;
		nf_process(runner->making[i], packets, n, &out);
		n = (uint16_t)RTE_MIN(out.n, (uint32_t)NF_BURST);
		memcpy(packets, out.packets, n * sizeof(*packets));
		memmove(out.packets, out.packets + n, (out.n - n) * sizeof(*packets));
		out.n -= n;
		nf_out_free(&out);
	}
	for (uint16_t i = 0; runner->parsed && i < n; i++)
		(void)packet_headers(packets[i]);
	return n;
}

/* Cycles per packet of some bursts. */
static double run(struct runner *runner, struct traffic *traffic, int bursts)
{
	uint64_t cycles = 0, packets = 0;

	for (int burst = 0; burst < bursts; burst++) {
		struct rte_mbuf *received[NF_BURST];
		uint64_t begin;
		uint16_t n;

		runner->now_us += BURST_US;
		n = receive(runner, traffic, received);
		if (n == 0)
			continue;
		begin = rte_rdtsc();
		chain_enter(runner->chain, received, n, runner->now_us);
		chain_step(runner->chain, 0, runner->now_us);
		cycles += rte_rdtsc() - begin;
		packets += n;
	}
	return (double)cycles / (double)RTE_MAX(packets, 1u);
}

/* Find the effect, by another burst. */
static void watch(struct runner *runner, struct traffic *traffic)
{
	struct rte_mbuf *received[NF_BURST];
	const uint16_t n = receive(runner, traffic, received);
	const struct burst burst = burst_of(received, n);

	runner->watched = &burst;
	if (n > 0)
		chain_enter(runner->chain, received, n, runner->now_us);
	runner->watched = NULL;
}

void runner_warm(struct runner *runner, struct traffic *traffic, uint32_t flows)
{
	const uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * WARM_MS;
	const double room = (double)rte_get_tsc_hz() / 1000 * ROUND_MS / NF_BURST;

	for (uint32_t packets = 0; packets < 12 * flows && rte_rdtsc() < end; packets += NF_BURST)
		run(runner, traffic, 1);
	watch(runner, traffic);
	runner->bursts = (int)RTE_MIN(RTE_MAX(room / run(runner, traffic, BEGIN_BURSTS), 1.0),
				      (double)MOST_BURSTS);
}

void runner_round(struct runner *runner, struct traffic *traffic, unsigned int round)
{
	run(runner, traffic, RTE_MIN(runner->bursts, BEGIN_BURSTS));
	runner->rounds[round] = run(runner, traffic, runner->bursts);
}

void runner_batch(struct runner *runner, unsigned int batch)
{
	const double entered = (double)chain_counts_of(runner->chain, 0).entered;

	runner->medians[batch] = quantile(runner->rounds, RUNNER_ROUNDS, 0.5);
	for (unsigned int i = 0; i < runner->n; i++)
		runner->visits[i] = (double)chain_counts_of(runner->chain, i).entered / entered;
}
