#include <math.h>

#include "core/latency.h"
#include "tests/support.h"

/* Quantiles are right within 1/32, over all magnitudes; small values are exact. */
TEST(quantiles_are_right)
{
	static struct latencies latencies, half;

	for (uint32_t i = 1; i <= 15; i++)
		latencies_add(&latencies, i);
	assert_true(latencies_quantile(&latencies, 0.5) == 8);
	assert_true(latencies_mean(&latencies) == 8);
	for (double most = 100; most < 4e9; most *= 7) {
		memset(&latencies, 0, sizeof(latencies));
		for (uint32_t i = 1; i <= 1000; i++)
			latencies_add(&latencies, (uint32_t)(most * i / 1000));
		for (double share = 0.1; share < 1; share += 0.1)
			assert_true(fabs(latencies_quantile(&latencies, share) / (most * share) -
					 1) < 0.04);
		assert_int_equal(latencies.most, (uint32_t)most);
	}
	memset(&latencies, 0, sizeof(latencies));
	latencies_add(&latencies, 3);
	latencies_add(&half, UINT32_MAX);
	latencies_merge(&latencies, &half);
	assert_int_equal(latencies.n, 2);
	assert_int_equal(latencies.most, UINT32_MAX);
	assert_true(latencies_quantile(&latencies, 0.5) == 3);
}

/* Without packets there is no latency. */
TEST(nothing_has_no_latency)
{
	static const struct latencies none;

	assert_true(latencies_quantile(&none, 0.99) == 0);
	assert_true(latencies_mean(&none) == 0);
}
