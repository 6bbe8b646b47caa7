/*
 * Measuring a company: rounds of windows until the standard error is small enough.
 *
 * Windows that follow each other are alike: tables lie where they lie, a clock is fast for a
 * while. So a run is several rounds, each with new instances elsewhere in memory; the standard
 * error is that of the rounds' means, which are as independent as they can be made, or that of all
 * windows where it is larger. Drift over minutes is beyond a run: the null control tells it.
 */
#ifndef NFS_TESTBED_MEASURE_H
#define NFS_TESTBED_MEASURE_H

#include "testbed/window.h"

#define LEAST_ROUNDS 5

struct run_limits {
	unsigned int window_ms;
	unsigned int least_windows; /* undisturbed, over all rounds */
	unsigned int
		most_windows; /* of any kind; a run takes no longer than they, and its tables */
	double standard_error_pct;
	uint64_t until_ns; /* clock_ns() at which it ends anyhow */
};

struct measured {
	double per_s[MOST_LOADS]; /* units per second */
	double standard_error_pct[MOST_LOADS];
	unsigned int rounds;
	unsigned int windows[DISTURBANCES];
	double elapsed_s;
};

enum outcome {
	MEASURED,
	TOO_NOISY,
	TOO_SLOW, /* tables were not filled when all ended; stderr says which */
	FAILED,
	INTERRUPTED,
};

/* `*stop` ends it early. */
enum outcome measure(struct measured *measured, const struct co_location *co_location,
		     struct workers *workers, const struct engines *engines,
		     const struct run_limits *limits, const volatile bool *stop);

/* Windows thrown away, and the reasons as text: "12 (run_delay 10, neighbour 2)". */
unsigned int measured_rejected(const struct measured *measured);
void measured_reasons(const struct measured *measured, char *text, size_t size);

#endif
