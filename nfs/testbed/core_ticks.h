/* How busy each core of the machine has been: the lines "cpu0 ..." of /proc/stat. */
#ifndef NFS_TESTBED_CORE_TICKS_H
#define NFS_TESTBED_CORE_TICKS_H

#include <sched.h>
#include <stdint.h>

#define CORE_TICKS "/proc/stat"

struct core_ticks {
	uint64_t busy, stolen; /* by a hypervisor, which is busy, too */
};

/* Those of all cores that the file tells, by their numbers. 0, or a negative errno without any. */
int core_ticks_read(const char *path, struct core_ticks cores[CPU_SETSIZE]);

#endif
