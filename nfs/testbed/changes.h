/*
 * How the rates of a run change with disturbance, by changes from one window to the next: a slow
 * change of the machine's speed hardly shows in these.
 */
#pragma once

#include "testbed/load.h"

#define MOST_CHANGES 4096 /* later ones are not needed */

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

/*
 * The trend of a load's rate by Huber's regression without intercept (Huber, 1964): single large
 * changes, as by a change of the clock, count as if they were smaller. Changes within a round
 * depend on each other, so the error is that of sums over rounds.
 */
struct trend changes_trend(const struct changes *changes, unsigned int load);
