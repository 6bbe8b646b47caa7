/*
 * Windows: short intervals of a run, each with the work done and what disturbed it.
 *
 * A window is undisturbed if the run had its cores to itself: no worker waited for its core or lost
 * it (schedstat, the thread's CPU clock), the hypervisor took no time, other cores that share the
 * cache were idle (/proc/stat), and the cores were as fast as ever in the run (probe.h).
 */
#pragma once

#include "testbed/co_run.h"
#include "testbed/core_ticks.h"

enum disturbance {
	UNDISTURBED,
	RUN_DELAY, /* a worker waited for its core */
	OFF_CORE,  /* a worker lost time that is not accounted for: interrupts, a hypervisor */
	STEAL,     /* the hypervisor reports that it took time from a core */
	NEIGHBOUR, /* another process ran on a core that shares the cache */
	SLOWED,    /* a core was slower than before: its other hyperthread, or its clock */
	CONTROL,   /* the control thread was interrupted while it read the counters */
	DISTURBANCES,
};

extern const char *const disturbance_names[DISTURBANCES];

/* Share of a window that a worker may lose; the control thread's wake-ups need some of it. */
#define MOST_LOST 0.005
#define MOST_SLOWED 1.05      /* of a probe, compared with the fastest of the run */
#define MOST_SLOWED_SHARED 1.3 /* on a shared machine: more than clocks differ */
#define LEAST_ON_CORE 0.01 /* share of a window below which a worker's rate means nothing */
#define MOST_READING_NS 20000 /* a longer read does not belong to one point in time */
#define LEAST_WINDOW_MS 20 /* in shorter windows the control thread's wake-ups exceed MOST_LOST */

/* The counters of a run at one point in time. */
struct snapshot {
	uint64_t ns;         /* clock_ns() */
	uint64_t reading_ns; /* how long reading `done` took */
	uint64_t done[MOST_LOADS];
	struct worker_time workers[MOST_WORKERS];
	struct {
		uint64_t cycles, n;
	} probes[MOST_WORKERS];
	struct core_ticks cores[CPU_SETSIZE];
};

/*
 * A run begins: how fast cores are is not known. On a machine whose hyperthreads and caches other
 * machines use, what was learned in earlier runs stays: a run may see none of a core's best time.
 */
void windows_begin(bool shared_machine);
/* On a shared machine: the TSC cycles of a probe at its fastest on any core; 0: not known. */
void windows_know(double probe_cycles);
/* The fastest probe of all cores so far, TSC cycles; 0 without any. */
double windows_fastest(void);
/* Learn from a window how fast the cores of a run are. */
void window_learn(const struct snapshot *from, const struct snapshot *to,
		  const struct co_run *co_run);

void snapshot_take(struct snapshot *snapshot, const struct co_run *co_run);

/* What disturbed the window between two snapshots. */
enum disturbance window_disturbed(const struct snapshot *from, const struct snapshot *to,
				  const struct co_run *co_run);

/* Units per second of a workload between two snapshots. */
double window_rate(const struct snapshot *from, const struct snapshot *to, unsigned int workload);

/*
 * How many times slower the cores of a workload were than ever, in the mean; at most
 * MOST_SLOWED_SHARED. What a core computes in its own cycles is so much more at its fastest clock.
 * 1 unless the machine is shared.
 */
double window_slowness(const struct snapshot *from, const struct snapshot *to,
		       const struct co_run *co_run, unsigned int workload);

/*
 * How much disturbed a window, in cores: the CPU time that other work took on the run's cores, and
 * on cores that share their cache, per time of the window. Time between the readings of work and
 * of CPU time counts, too. Infinite if a worker hardly ran.
 */
double window_disturbance(const struct snapshot *from, const struct snapshot *to,
			  const struct co_run *co_run);

/*
 * Units per second of its worker's time on the core: what the workload does while it runs; of a
 * chain's cores, the one that lost most counts, of those of copies the mean. With a rate limit it
 * does no more than that.
 */
double window_core_rate(const struct snapshot *from, const struct snapshot *to,
			const struct co_run *co_run, unsigned int workload);
