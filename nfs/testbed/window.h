/*
 * Windows: short spans of a run, each with what was done in it and what disturbed it.
 *
 * A window counts when nothing but the run had its cores: no worker waited for its core or lost it
 * (schedstat, the thread's own clock), the hypervisor took nothing, and cores that share the cache
 * with the run's and have no part in it were idle (/proc/stat).
 */
#ifndef NFS_TESTBED_WINDOW_H
#define NFS_TESTBED_WINDOW_H

#include "testbed/co_run.h"
#include "testbed/core_ticks.h"

enum disturbance {
	UNDISTURBED,
	RUN_DELAY, /* a worker waited for its core */
	OFF_CORE,  /* a worker lost time that nobody accounts for: interrupts, a hypervisor */
	STEAL,     /* the hypervisor says that it took a core away */
	NEIGHBOUR, /* somebody worked on an idle core beside the run's */
	CONTROL,   /* whoever reads what was done did not read it at once */
	DISTURBANCES,
};

extern const char *const disturbance_names[DISTURBANCES];

/* A worker may lose this part of a window: the control thread wakes up somewhere, too. */
#define MOST_LOST 0.005
#define MOST_READING_NS 20000 /* of what was done: longer, and nobody knows when it was so */
#define LEAST_WINDOW_MS 20    /* of less, that moment is more than may be lost */

/* The state of a run at one moment. */
struct snapshot {
	uint64_t ns;         /* clock_ns() */
	uint64_t reading_ns; /* until `done` was read */
	uint64_t done[MOST_LOADS];
	struct worker_time workers[MOST_WORKERS];
	struct core_ticks cores[CPU_SETSIZE];
};

void snapshot_take(struct snapshot *snapshot, const struct co_run *co_run);

/* What disturbed the span between two moments. */
enum disturbance window_disturbed(const struct snapshot *from, const struct snapshot *to,
				  const struct co_run *co_run);

/* Units per second of a workload between two moments. */
double window_rate(const struct snapshot *from, const struct snapshot *to, unsigned int workload);

#endif
