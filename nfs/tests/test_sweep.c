#include "core/sweep.h"
#include "tests/support.h"

/* A sweep takes its period, for any time between bursts: no remainder is lost. */
static void sweeps_take_their_period(void **state)
{
	const uint64_t steps_us[] = {1, 7, 300000, 999999, 3333333};

	(void)state;
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
static void pauses_are_caught_up_gradually(void **state)
{
	struct sweep sweep = sweep_of(10000, 1000000);
	uint64_t now_us = 1000000000, looks = 0;

	(void)state;
	for (int burst = 0; burst < 12; burst++) {
		const uint32_t due = sweep_due(&sweep, now_us);

		assert_true(due <= SWEEP_MOST);
		looks += due;
	}
	assert_int_equal(looks, 10000); /* one period, though a thousand have passed */
}

/* Every entry is checked once per period. */
static void every_entry_is_checked(void **state)
{
	struct sweep sweep = sweep_of(5, 100);

	(void)state;
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(sweep_next(&sweep), i % 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeps_take_their_period),
		cmocka_unit_test(pauses_are_caught_up_gradually),
		cmocka_unit_test(every_entry_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
