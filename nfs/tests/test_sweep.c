#include "core/sweep.h"
#include "tests/support.h"

/* A sweep takes its period, for any time between bursts: no remainder is lost. */
TEST(sweeps_take_their_period)
{
	const uint64_t steps_us[] = {1, 7, 300000, 999999, 3333333};

	for (size_t i = 0; i < RTE_DIM(steps_us); i++) {
		struct sweep sweep = sweep_of(64, 10000000);
		uint64_t looks = 0, now_us = 0;

		while (now_us < 100000000) {
			now_us += steps_us[i];
			looks += sweep_due(&sweep, now_us);
		}
		assert_in_range(looks, 639, 641 + 64 * steps_us[i] / 10000000 + 1);
	}
}

/* After a long pause one burst checks no more than its limit, and the next ones the rest. */
TEST(pauses_are_caught_up_gradually)
{
	struct sweep sweep = sweep_of(10000, 1000000);
	uint64_t now_us = 1000000000, looks = 0;

	for (int burst = 0; burst < 12; burst++) {
		const uint32_t due = sweep_due(&sweep, now_us);

		assert_true(due <= SWEEP_MOST);
		looks += due;
	}
	assert_int_equal(looks, 10000); /* one period, though a thousand have passed */
}

/* Every entry is checked once per period. */
TEST(every_entry_is_checked)
{
	struct sweep sweep = sweep_of(5, 100);

	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(sweep_next(&sweep), i % 5);
}
