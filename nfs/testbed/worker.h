/* The threads that run workloads, each pinned to a core of its own. */
#ifndef NFS_TESTBED_WORKER_H
#define NFS_TESTBED_WORKER_H

#include <stdint.h>
#include <time.h>

#include "testbed/machine.h"

#define MOST_WORKERS MACHINE_MOST_CORES

struct worker {
	unsigned int lcore;
	int core;
	cpu_set_t cache_neighbours; /* cores that share its last-level cache */
	clockid_t clock;            /* time that the thread was on its core */
	int schedstat;              /* its file in /proc */
};

/* Where a worker's time had gone at a moment, ns. */
struct worker_time {
	uint64_t at; /* clock_ns() */
	uint64_t on_core;
	uint64_t run_delay; /* it could have run, and something else did */
};

struct workers {
	unsigned int n;
	bool realtime;   /* nothing else runs on a core while its worker does */
	uint64_t rounds; /* begun on them so far: no two are alike */
	struct worker worker[MOST_WORKERS];
};

/* What DPDK's environment is made of. */
struct eal_config {
	unsigned int memory_mb;
	bool realtime;
	bool small_pages; /* though there be large ones free */
};

/*
 * Start DPDK's environment with a worker on each core of the machine, while the thread that calls
 * floats. 0, or a negative errno after printing why.
 */
int workers_start(struct workers *workers, const struct machine *machine,
		  const struct eal_config *eal_config);
void workers_stop(struct workers *workers);

/*
 * Wait until the worker has done what it was launched for, asleep: to spin, as rte_eal_wait_lcore
 * does, could take from the worker the very core that it needs.
 */
int worker_wait(const struct worker *worker);

struct worker_time worker_time(const struct worker *worker);

/* Keep the calling thread off the cores of the first `busy` workers, if the machine has others. */
void control_thread_avoid(const struct workers *workers, unsigned int busy);

#endif
