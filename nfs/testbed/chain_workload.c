#include "testbed/chain_workload.h"

#include <rte_cycles.h>

#include "core/clock.h"
#include "core/memory.h"

#define PERIOD_US 1000

/* What one core needs. */
struct core_state {
	uint64_t period_begin, busy; /* cycles of the current period */
	uint64_t allowed;            /* cycles of a period; UINT64_MAX: all */
	struct core_latencies latencies;
} __rte_cache_aligned;

struct chain_workload {
	struct chain *chain;
	struct source source;
	unsigned int entry;
	uint64_t period;
	bool interrupted;
	unsigned int epoch; /* how often latencies were forgotten */
	struct core_state cores[CHAIN_MOST_CORES];
};

/* Free what leaves, and add its latency. */
static void take(void *state, unsigned int core, enum chain_end end, struct rte_mbuf **packets,
		 uint16_t n)
{
	struct chain_workload *workload = state;

	(void)end;
	if (workload->source.cycles_per_packet > 0)
		core_latencies_add(&workload->cores[core].latencies, &workload->source, packets, n);
	rte_pktmbuf_free_bulk(packets, n);
}

struct chain_workload *chain_workload_create(const struct chain_load *load,
					     const struct source *source, struct rte_mempool *spare,
					     struct accelerator *const *accelerators)
{
	struct chain_workload *workload = nf_zalloc_for("chain", sizeof(*workload));
	struct chain_config config = {.spare = spare, .sink = take, .state = workload};

	if (!workload)
		return NULL;
	for (int i = 0; accelerators && i < ACCELERATOR_KINDS; i++)
		config.accelerators[i] = accelerators[i];
	config.interrupt = &workload->interrupted;
	workload->chain = chain_create(&load->spec, &config);
	if (!workload->chain) {
		nf_free(workload);
		return NULL;
	}
	workload->source = *source;
	workload->entry = chain_entry_core(workload->chain, NF_INSIDE);
	workload->period = (uint64_t)(clock_tsc_hz() * PERIOD_US * 1e-6);
	for (unsigned int i = 0; i < load->spec.n_cores; i++)
		workload->cores[i].allowed =
			load->shares[i] < 1
				? (uint64_t)(load->shares[i] * (double)workload->period)
				: UINT64_MAX;
	return workload;
}

void chain_workload_destroy(struct chain_workload *workload)
{
	if (!workload)
		return;
	chain_destroy(workload->chain);
	nf_free(workload);
}

/* Whether a core has used up its share of this period. */
static bool is_resting(struct core_state *core, uint64_t period, uint64_t now)
{
	if (core->allowed == UINT64_MAX)
		return false;
	if (now - core->period_begin >= period) {
		/* what a long step took too much, the next periods give back */
		core->busy -= RTE_MIN(core->busy, core->allowed);
		core->period_begin = now;
	}
	return core->busy >= core->allowed;
}

uint16_t chain_workload_step(struct chain_workload *workload, unsigned int core, uint64_t now_us)
{
	struct core_state *state = &workload->cores[core];
	const uint64_t begin = rte_rdtsc();
	struct rte_mbuf *packets[NF_BURST];
	uint16_t n = 0;

	core_latencies_begin(&state->latencies, &workload->epoch);
	if (is_resting(state, workload->period, begin))
		return 0;
	if (core == workload->entry) {
		n = source_receive(&workload->source, packets);
		if (n > 0)
			chain_enter(workload->chain, packets, n, now_us);
	}
	chain_step(workload->chain, core, now_us);
	if (state->allowed != UINT64_MAX)
		state->busy += rte_rdtsc() - begin;
	return n;
}

void chain_workload_interrupt(struct chain_workload *workload)
{
	__atomic_store_n(&workload->interrupted, true, __ATOMIC_RELAXED);
}

void chain_workload_flush(struct chain_workload *workload, uint64_t now_us)
{
	chain_flush(workload->chain, now_us);
}

const struct chain *chain_workload_chain(const struct chain_workload *workload)
{
	return workload->chain;
}

struct latencies chain_workload_latencies(const struct chain_workload *workload)
{
	struct latencies all = {0};

	for (unsigned int i = 0; i < CHAIN_MOST_CORES; i++)
		latencies_merge(&all, &workload->cores[i].latencies.latencies);
	return all;
}

void chain_workload_reset(struct chain_workload *workload)
{
	__atomic_fetch_add(&workload->epoch, 1, __ATOMIC_RELAXED);
}
