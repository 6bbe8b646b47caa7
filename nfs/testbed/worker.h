/* Worker threads that run workloads, each pinned to its own core. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "testbed/eal.h"

#define MOST_WORKERS MACHINE_MOST_CORES

struct worker {
	unsigned int lcore;
	int core;
	cpu_set_t cache_neighbours; /* cores that share its last-level cache */
	clockid_t clock;            /* the thread's CPU time */
	int schedstat;              /* file descriptor in /proc */
};

/* A worker's times, ns. */
struct worker_time {
	uint64_t at; /* clock_ns() */
	uint64_t on_core;
	uint64_t run_delay; /* runnable, but not running */
};

struct workers {
	unsigned int n;
	bool realtime;   /* other processes wait while a worker runs */
	uint64_t rounds; /* started so far; each gets its own seed */
	struct ports ports;
	struct worker worker[MOST_WORKERS];
};

/*
 * Start DPDK's EAL with a worker on each core of the machine; the calling thread is not pinned. 0,
 * or a negative errno after printing why.
 */
int workers_start(struct workers *workers, const struct machine *machine,
		  const struct eal_config *eal_config);
void workers_stop(struct workers *workers);

/* Sleep until the worker's task ends: rte_eal_wait_lcore spins and could take the worker's core. */
int worker_wait(const struct worker *worker);

struct worker_time worker_time(const struct worker *worker);

/* Keep the calling thread off the cores of the first `busy` workers, if there are others. */
void control_thread_avoid(const struct workers *workers, unsigned int busy);
