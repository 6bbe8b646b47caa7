/* Paces work at a given rate by the time stamp counter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "core/clock.h"

/*
 * Larger delays are not caught up, so that no burst follows a pause. It is the time that may be
 * lost in the shortest window (testbed/window.h), at any rate.
 */
#define PACE_MOST_LATE_S 100e-6

struct pace {
	double cycles_per_unit; /* 0: unlimited */
	double most_late;       /* cycles */
	double due;             /* cycles, when the next unit is due */
};

static inline struct pace pace_at(double units_per_s)
{
	struct pace pace = {0};

	if (units_per_s > 0) {
		const double hz = clock_tsc_hz();

		pace.cycles_per_unit = hz / units_per_s;
		pace.most_late = hz * PACE_MOST_LATE_S;
		pace.due = (double)rte_rdtsc();
	}
	return pace;
}

/* pace_may() at a time in cycles, for a limited rate. */
static inline bool pace_may_at(struct pace *pace, uint32_t units, double now)
{
	if (now < pace->due)
		return false;
	pace->due = RTE_MAX(pace->due, now - pace->most_late) + units * pace->cycles_per_unit;
	return true;
}

/* Whether `units` are due now; they then count as done. */
static inline bool pace_may(struct pace *pace, uint32_t units)
{
	return pace->cycles_per_unit == 0 || pace_may_at(pace, units, (double)rte_rdtsc());
}
