/*
 * Measures co-located workloads: rounds of windows until the standard error is small enough.
 *
 * Consecutive windows are correlated: tables stay where they are in memory, the clock stays fast
 * for a while. So a run has several rounds, each with new instances elsewhere in memory. The
 * standard error is that of the round means, which are nearly independent, or that of all windows
 * if it is larger. Drift over minutes shows in the null control.
 *
 * On a machine with other work, a best effort may answer with disturbed windows (best_effort.h).
 */
#pragma once

#include "testbed/rounds.h"
#include "testbed/window.h"

struct run_limits {
	unsigned int window_ms;
	unsigned int least_windows; /* undisturbed ones, over all rounds */
	unsigned int
		most_windows; /* of any kind; also limits the run's time, besides filling tables */
	double standard_error_pct;
	bool best_effort;  /* answer with disturbed windows, too */
	bool shared_machine; /* other machines use its hyperthreads and caches */
	uint64_t until_ns; /* clock_ns() at which the run ends in any case */
};

struct measured {
	double per_s[MOST_LOADS]; /* units per second */
	struct load_result results[MOST_LOADS]; /* of all rounds together */
	double standard_error_pct[MOST_LOADS];
	unsigned int rounds;
	unsigned int windows[DISTURBANCES];
	double elapsed_s;
};

enum outcome {
	MEASURED,
	BEST_EFFORT, /* from the least disturbed windows, with a larger error */
	TOO_NOISY,
	TOO_SLOW, /* tables were not filled in time; stderr names the workload */
	FAILED,
	INTERRUPTED,
};

/* Measure until the errors are small enough, a limit is reached, or `*stop` becomes true. */
enum outcome measure(struct measured *measured, const struct co_location *co_location,
		     struct workers *workers, const struct engines *engines,
		     const struct run_limits *limits, const volatile bool *stop);

/* The share of all windows that were disturbed, in percent. */
double measured_disturbed_pct(const struct measured *measured);

/* The number of disturbed windows, and the reasons as text: "12 (run_delay 10, neighbour 2)". */
unsigned int measured_rejected(const struct measured *measured);
void measured_reasons(const struct measured *measured, char *text, size_t size);
