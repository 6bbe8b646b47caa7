/* Work at a wanted rate, told by the processor's clock. */
#ifndef NFS_CORE_PACE_H
#define NFS_CORE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "core/clock.h"

/*
 * What is late by more is not caught up: a pause must not be followed by a burst. It is what may be
 * lost of the shortest window that is believed (testbed/window.h), whatever the rate.
 */
#define PACE_MOST_LATE_S 100e-6

struct pace {
	double cycles_per_unit; /* 0: as fast as it goes */
	double most_late;       /* cycles */
	double due;             /* cycles, when the next unit may start */
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

/* pace_may() at a moment told in cycles, of a pace that is not as fast as it goes. */
static inline bool pace_may_at(struct pace *pace, uint32_t units, double now)
{
	if (now < pace->due)
		return false;
	pace->due = RTE_MAX(pace->due, now - pace->most_late) + units * pace->cycles_per_unit;
	return true;
}

/* Whether `units` may be done now; they are then taken as done. */
static inline bool pace_may(struct pace *pace, uint32_t units)
{
	return pace->cycles_per_unit == 0 || pace_may_at(pace, units, (double)rte_rdtsc());
}

#endif
