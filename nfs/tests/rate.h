/* Checks that a bench keeps a given rate. */
#pragma once

#include <time.h>

#include "core/bench.h"
#include "core/clock.h"
#include "tests/support.h"

#define RATE_NS 50000000ull
#define RATE_TRIES 20

static inline double rate_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/*
 * Within 2 %: never above it by the clock, and once not below. On a busy machine it suffices to
 * reach it relative to CPU time, because a bench does not catch up on long pauses.
 */
static inline void check_rate(struct bench *bench, double per_s)
{
	double by_clock = 0, at_best = 0;

	for (int i = 0; i < RATE_TRIES && by_clock < 0.98 * per_s; i++) {
		const uint64_t begin = clock_ns();
		const double cpu_begin = rate_cpu_ns();
		uint64_t done = 0, ns;

		do {
			done += bench_step(bench);
			ns = clock_ns() - begin;
		} while (ns < RATE_NS);
		by_clock = (double)done * 1e9 / (double)ns;
		at_best = RTE_MAX(at_best, (double)done * 1e9 / (rate_cpu_ns() - cpu_begin));
		print_message("%s: %.0f/s of %.0f\n", bench->kind->name, by_clock, per_s);
		assert_true(by_clock <= 1.02 * per_s);
	}
	assert_true(by_clock >= 0.98 * per_s || at_best >= 0.98 * per_s);
}
