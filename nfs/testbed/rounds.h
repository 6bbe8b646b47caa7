/*
 * The rounds of a run: each throughput, its error, and when a run may end.
 *
 * The error that is stated is a standard error, wider for few rounds: 1.96 of it hold the truth in
 * at least 95 % of all runs.
 */
#pragma once

#include "testbed/load.h"
#include "testbed/statistics.h"

#define LEAST_ROUNDS 5

/*
 * A run ends as soon as its error is small, so its rounds agree better than those of other runs.
 * Errors that are wider by this factor hold the truth as often as stated (tests/test_rounds.c).
 */
#define EARLY_END 1.15

/* Undisturbed rounds. */
struct rounds {
	struct readings means[MOST_LOADS];   /* one reading per round */
	struct readings windows[MOST_LOADS]; /* of all rounds, also of an incomplete one */
};

/*
 * The error of a throughput in percent: that of the round means or, if it is larger, that of all
 * windows. Infinite before the second round.
 */
double rounds_error_pct(const struct rounds *rounds, unsigned int load);

/*
 * Two rounds in a row must be accurate: rounds that agree by chance would end a run too early and
 * state too small an error.
 */
struct ending {
	unsigned int rounds, accurate_rounds;
};

/* Count a round, after which the largest error is `error_pct`; whether the run may end. */
bool ending_reached(struct ending *ending, double error_pct, double limit_pct);
