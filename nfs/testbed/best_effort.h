/*
 * What a run on a busy machine measures: the best effort where too few windows are undisturbed.
 *
 * A round counts its least disturbed windows, with rates per time on the core. Such a rate is
 * still wrong: caches are cold after another process ran, and neighbours were stopped at other
 * times. How rates change with disturbance (struct trend) shows how wrong: the change down to no
 * disturbance is part of the error. The rates themselves are not corrected by it. What disturbs
 * all windows alike does not show, and where they show little, a typical change is assumed.
 */
#pragma once

#include "testbed/load.h"
#include "testbed/rounds.h"

#define MOST_CHANGES 4096 /* later ones are not needed */

/*
 * How the rates of a run change with disturbance, by changes from one window to the next: a slow
 * change of the machine's speed hardly shows in these.
 */
struct changes {
	unsigned int n, rounds;
	struct {
		unsigned int round;
		double disturbance;
		double rates[MOST_LOADS];
	} at[MOST_CHANGES];
};

/* Change of a rate per unit of disturbance, and its error, wider for few rounds. */
struct trend {
	double change;
	double error; /* infinite if the changes do not show it */
};

#define ROUND_WINDOWS 1024  /* most windows of a round */
#define PATIENCE_WINDOWS 24 /* after these it is seen whether a round will be undisturbed */

/* The windows of a round, in the order of time. */
struct round_windows {
	unsigned int n;
	struct {
		double disturbance; /* cores */
		double rates[MOST_LOADS];
	} at[ROUND_WINDOWS];
};

struct best_effort {
	struct readings means[MOST_LOADS]; /* one reading per round */
	struct readings disturbance;       /* of the windows that count, one reading per round */
	struct changes changes;
};

/* Add a window, if there is room. */
void round_windows_add(struct round_windows *windows, double disturbance, const double *rates,
		       unsigned int n_loads);

/* Add a round; false if it has fewer usable windows than `required`, and then nothing is added. */
bool best_effort_add(struct best_effort *effort, const struct round_windows *windows,
		     unsigned int required, unsigned int n_loads);

/* The error of a throughput in percent; infinite before the second round. */
double best_effort_error_pct(const struct best_effort *effort, unsigned int load);

/*
 * The trend of a load's rate by Huber's regression without intercept (Huber, 1964): single large
 * changes, as by a change of the clock, count as if they were smaller. Changes within a round
 * depend on each other, so the error is that of sums over rounds.
 */
struct trend changes_trend(const struct changes *changes, unsigned int load);
