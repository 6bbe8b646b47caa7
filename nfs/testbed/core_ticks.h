/* Busy time of each core: the lines "cpu0 ..." of /proc/stat. */
#pragma once

#include <sched.h>
#include <stdint.h>

#define CORE_TICKS "/proc/stat"

struct core_ticks {
	uint64_t busy, stolen; /* time taken by the hypervisor; counted in `busy`, too */
};

/* Read the times of all cores, indexed by core number. 0, or a negative errno. */
int core_ticks_read(const char *path, struct core_ticks cores[CPU_SETSIZE]);
