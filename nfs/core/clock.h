/* The kernel's clock, and the rate of the time stamp counter. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_BACK_US 60000000ull
#define CLOCK_AHEAD_US (86400 * 1000000ull)

/* Nanoseconds of CLOCK_MONOTONIC_RAW, which is neither set nor slewed. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/*
 * Let a clock, which `ahead_us` is ahead of them, follow the times of packets. It never goes back,
 * and is never 0. It stands still until times that went back have come up to it, or, where that is
 * by more than a minute, goes on from there; and again by the times themselves, as far as it can,
 * if they go forward by a day.
 */
static inline void clock_follow(uint64_t *clock_us, uint64_t *ahead_us, uint64_t time_us)
{
	if (time_us + *ahead_us + CLOCK_BACK_US < *clock_us ||
	    (*ahead_us > 0 && time_us + *ahead_us > *clock_us + CLOCK_AHEAD_US))
		*ahead_us = *clock_us > time_us ? *clock_us - time_us : 0;
	if (*clock_us < time_us + *ahead_us)
		*clock_us = time_us + *ahead_us;
	if (*clock_us == 0)
		*clock_us = 1;
}

/*
 * Cycles of the time stamp counter per second, measured against the kernel's clock since the
 * program started. DPDK's own estimate is rounded to 10 MHz: 2600 MHz instead of 2596.
 */
double clock_tsc_hz(void);
