/* Whether a bench keeps the rate that it was asked for. */
#ifndef NFS_TESTS_RATE_H
#define NFS_TESTS_RATE_H

#include <time.h>

#include "core/bench.h"
#include "core/clock.h"
#include "tests/support.h"

#define RATE_NS 50000000ull
#define RATE_TRIES 40

static inline double rate_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/*
 * Within 2 %: never more by the clock; and once as much, by the time in which it had its core, as a
 * machine with other work takes that away, and it catches up on nothing.
 */
static inline void check_rate(struct bench *bench, double per_s)
{
	double had = 0;

	for (int i = 0; i < RATE_TRIES && had < 0.98 * per_s; i++) {
		const uint64_t begin = clock_ns();
		const double cpu_begin = rate_cpu_ns();
		uint64_t done = 0, ns;

		do {
			done += bench_step(bench);
			ns = clock_ns() - begin;
		} while (ns < RATE_NS);
		had = (double)done * 1e9 / (rate_cpu_ns() - cpu_begin);
		print_message("%s: %.0f/s of %.0f, %.0f/s of its core's time\n", bench->kind->name,
			      (double)done * 1e9 / (double)ns, per_s, had);
		assert_true((double)done * 1e9 / (double)ns <= 1.02 * per_s);
	}
	assert_true(had >= 0.98 * per_s);
}

#endif
