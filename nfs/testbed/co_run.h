/*
 * Runs co-located workloads: each on a worker of its own, each accelerator in use on another. With
 * realtime priority, idle workers keep their cores busy, so that no other process runs there.
 */
#pragma once

#include "testbed/chain_result.h"
#include "testbed/probe.h"
#include "testbed/worker.h"
#include "testbed/workload.h"

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

/* The worker that runs a workload; of a chain, the first of its cores. */
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
/* End it. What its chains did is added to `chains`, one for each load, unless it is NULL. */
void co_run_stop(struct co_run *co_run, struct chain_result *chains);
