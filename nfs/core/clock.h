/* Time: the kernel's, and the rate at which the processor's counter goes. */
#ifndef NFS_CORE_CLOCK_H
#define NFS_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the clock that nobody sets and nobody slews. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/*
 * Cycles of the time stamp counter per second, told by the kernel's clock since the program began.
 * Where the processor does not tell it, DPDK rounds what it finds to 10 MHz: of 2596 MHz it makes
 * 2600.
 */
double clock_tsc_hz(void);

#endif
