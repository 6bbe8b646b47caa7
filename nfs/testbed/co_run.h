/*
 * A company at work: each workload on a worker of its own, each accelerator in use on another.
 * Realtime workers that are left hold their cores, so that nobody else has them.
 */
#ifndef NFS_TESTBED_CO_RUN_H
#define NFS_TESTBED_CO_RUN_H

#include "testbed/worker.h"
#include "testbed/workload.h"

struct engines {
	struct accelerator *kinds[ACCELERATOR_KINDS]; /* NULL where there is none */
	bool clients_share_a_core;
};

struct task;

struct co_run {
	const struct co_location *co_location;
	const struct workers *workers;
	struct workload *workloads[MOST_LOADS];
	unsigned int n_workers; /* of `workers`, the first ones: clients, engines, holders */
	struct task *tasks;
	bool stop_clients, stop_engines;
};

/* Cores that a company takes, engines included. */
unsigned int co_run_cores(const struct co_location *co_location, const struct engines *engines);

/*
 * Make the instances and set them to work: a round, whose traffic, and where in memory things come
 * to lie, are other than those of all before it. 0, or a negative errno after printing why.
 */
int co_run_start(struct co_run *co_run, const struct co_location *co_location,
		 struct workers *workers, const struct engines *engines);
void co_run_stop(struct co_run *co_run);

#endif
