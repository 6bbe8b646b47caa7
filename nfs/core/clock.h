/* The kernel's clock, and the rate of the time stamp counter. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC_RAW, which is neither set nor slewed. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/*
 * Cycles of the time stamp counter per second, measured against the kernel's clock since the
 * program started. DPDK's own estimate is rounded to 10 MHz: 2600 MHz instead of 2596.
 */
double clock_tsc_hz(void);
