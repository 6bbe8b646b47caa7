/*
 * Runs co-located workloads: each on a worker of its own, each accelerator in use on another. With
 * realtime priority, idle workers keep their cores busy, so that no other process runs there.
 */
#ifndef NFS_TESTBED_CO_RUN_H
#define NFS_TESTBED_CO_RUN_H

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
	unsigned int n_workers; /* used ones: clients, engines, then busy loops */
	bool clients_share_a_core;
	struct task *tasks;
	bool stop_clients, stop_engines;
};

/* The worker that runs a workload. */
static inline unsigned int co_run_worker(const struct co_run *co_run, unsigned int workload)
{
	return co_run->clients_share_a_core ? 0 : workload;
}

/* Cores that a co-location needs, including engines. */
unsigned int co_run_cores(const struct co_location *co_location, const struct engines *engines);

/*
 * Create the instances and start them: one round. Its traffic and memory layout differ from those
 * of all earlier rounds. 0, or a negative errno after printing why.
 */
int co_run_start(struct co_run *co_run, const struct co_location *co_location,
		 struct workers *workers, const struct engines *engines);
void co_run_stop(struct co_run *co_run);

#endif
