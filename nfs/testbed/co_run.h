/*
 * Runs co-located workloads: each on a worker of its own, each accelerator in use on another. With
 * realtime priority, idle workers keep their cores busy, so that no other process runs there.
 */
#pragma once

#include <stdint.h>

#include <rte_cycles.h>

#include "testbed/chain_workload.h"
#include "testbed/worker.h"
#include "testbed/workload.h"

/*
 * What a load did in a run besides its work: the latency of packets at a rate; of a chain, the
 * packets that enter and leave each function.
 */
struct load_result {
	struct chain_counts stages[CHAIN_MOST_FUNCTIONS];
	uint64_t lost; /* on full rings */
	struct latencies latencies;
};

/*
 * A probe of a core's speed: a fixed number of additions that fill its issue slots, a few times per
 * millisecond between bursts. What slows it down, slows down the workload, too, and shows nowhere
 * else: another virtual machine on the other hyperthread of the core, or a lower clock. They are
 * done twice and timed the second time: what a workload leaves in the caches does not count.
 */

#define PROBE_ADDITIONS 512
#define PROBE_EVERY 200000 /* TSC cycles; it takes less than 1 % of the time */

/* The probes of one worker, which alone writes it. */
struct probe {
	uint64_t last;   /* TSC when the last one ended */
	uint64_t cycles; /* of all of them */
	uint64_t n;
} __rte_cache_aligned;

/* Take a probe if it is time. */
static inline void probe_take(struct probe *probe)
{
	uint64_t begin = rte_rdtsc();
	uint64_t a = begin, b = 1, c = 2, d = 3;

	if (begin - probe->last < PROBE_EVERY)
		return;
	for (unsigned int time = 0; time < 2; time++) {
		begin = rte_rdtsc();
		for (unsigned int i = 0; i < PROBE_ADDITIONS; i++) {
			a += i, b += i, c += i, d += i;
			__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
		}
	}
	probe->last = rte_rdtsc();
	__atomic_store_n(&probe->cycles, probe->cycles + probe->last - begin, __ATOMIC_RELAXED);
	__atomic_store_n(&probe->n, probe->n + 1, __ATOMIC_RELAXED);
}

struct engines {
	struct accelerator *kinds[ACCELERATOR_KINDS]; /* NULL if not available */
	bool clients_share_a_core;
};

struct task;

struct co_run {
	const struct co_location *co_location;
	const struct workers *workers;
	struct workload *workloads[MOST_LOADS];
	struct probe probes[MOST_WORKERS];
	unsigned int n_workers; /* used ones: clients, engines, then busy loops */
	bool clients_share_a_core;
	struct task *tasks;
	bool stop_clients, stop_engines;
};

/* The worker that runs a workload, on the first of its cores. */
static inline unsigned int co_run_worker(const struct co_run *co_run, unsigned int workload)
{
	unsigned int worker = 0;

	for (unsigned int i = 0; !co_run->clients_share_a_core && i < workload; i++)
		worker += load_cores(&co_run->co_location->loads[i]);
	return worker;
}

/* Cores that a co-location needs, including engines. */
unsigned int co_run_cores(const struct co_location *co_location, const struct engines *engines);

/*
 * Create the instances and start them: one round. Its traffic and memory layout differ from those
 * of all earlier rounds. 0, or a negative errno after printing why.
 */
int co_run_start(struct co_run *co_run, const struct co_location *co_location,
		 struct workers *workers, const struct engines *engines);
/* End it. What its loads did is added to `results`, one for each, unless it is NULL. */
void co_run_stop(struct co_run *co_run, struct load_result *results);

/*
 * Packets that leave a stage for each that enters the chain; above 1 if it makes several of one.
 */
double load_result_leaving(const struct load_result *result, unsigned int stage);
/* Packets that the stage neither sends on nor sends back, in percent of those that enter it. */
double load_result_dropped_pct(const struct load_result *result, unsigned int stage);
