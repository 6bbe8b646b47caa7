/* Work at a wanted rate, told by the processor's clock. */
#ifndef NFS_CORE_PACE_H
#define NFS_CORE_PACE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

/* Units ahead of which the schedule is not caught up: a pause must not be followed by a burst. */
#define PACE_MOST_BEHIND 4096

struct pace {
	double cycles_per_unit; /* 0: as fast as it goes */
	double due;             /* cycles, when the next unit may start */
};

static inline struct pace pace_at(double units_per_s)
{
	struct pace pace = {0};

	if (units_per_s > 0) {
		pace.cycles_per_unit = (double)rte_get_tsc_hz() / units_per_s;
		pace.due = (double)rte_rdtsc();
	}
	return pace;
}

/* Whether `units` may be done now; they are then taken as done. */
static inline bool pace_may(struct pace *pace, uint32_t units)
{
	double now, late;

	if (pace->cycles_per_unit == 0)
		return true;
	now = (double)rte_rdtsc();
	late = now - pace->due;
	if (late < 0)
		return false;
	if (late > PACE_MOST_BEHIND * pace->cycles_per_unit)
		pace->due = now;
	pace->due += units * pace->cycles_per_unit;
	return true;
}

#endif
