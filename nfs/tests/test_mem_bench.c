#include <math.h>

#include "core/bench.h"
#include "tests/rate.h"
#include "tests/support.h"

/* It keeps the given rate with every pattern. */
TEST(keeps_its_rate)
{
	for (int pattern = 0; pattern <= 2; pattern++) {
		const struct nf_setting settings[] = {
			{"wss_mb", 0.2}, {"access_mops", 2}, {"pattern", pattern}};
		struct bench *bench = bench_create("mem-bench", NULL, settings, 3);

		assert_non_null(bench);
		check_rate(bench, 2e6);
		bench_destroy(bench);
	}
}

/* Without a rate it never waits. */
TEST(unlimited_rate_never_waits)
{
	struct bench *bench = bench_create("mem-bench", NULL, SETTINGS({"wss_mb", 1}));

	assert_non_null(bench);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(bench_step(bench), 256);
	bench_destroy(bench);
}

/* Parameters out of range are rejected. */
TEST(rejects_bad_parameters)
{
	const struct nf_setting size[] = {{"wss_mb", 0}}, unknown[] = {{"wss", 1}},
				rate[] = {{"access_mops", NAN}};

	assert_null(bench_create("mem-bench", NULL, size, 1));
	assert_null(bench_create("mem-bench", NULL, unknown, 1));
	assert_null(bench_create("mem-bench", NULL, rate, 1));
	assert_null(bench_create("men-bench", NULL, NULL, 0));
}
