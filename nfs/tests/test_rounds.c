#include "testbed/rounds.h"
#include "tests/noise.h"
#include "tests/support.h"

#define RUNS 4000
#define MOST_ROUNDS 100

/* Student's t for 4, 5, 9 and 99 degrees of freedom, by tables; more approach the normal one. */
TEST(quantiles_of_students_t)
{
	static const struct {
		unsigned int freedom;
		double t;
	} table[] = {{1, 12.706}, {4, 2.7764}, {5, 2.5706}, {9, 2.2622}, {99, 1.9842}};

	for (size_t i = 0; i < RTE_DIM(table); i++)
		assert_float_equal(student_t(table[i].freedom), table[i].t, 2e-3 * table[i].t);
	assert_float_equal(student_t(100000), NORMAL_QUANTILE, 1e-4);
	assert_true(isinf(student_t(0)));
}

/* Five readings have an error 2.776 / 1.96 times as wide as many readings would have. */
TEST(few_readings_have_a_wider_error)
{
	struct readings readings = {0};

	readings_add(&readings, 1);
	assert_true(isinf(readings_stated_error(&readings)));
	for (int reading = 2; reading <= 5; reading++)
		readings_add(&readings, reading);
	assert_float_equal(readings_stated_error(&readings),
			   1.4165 * readings_standard_error(&readings), 1e-3);
}

/* The error is that of the round means, or of all windows if that is larger. */
TEST(the_larger_error_counts)
{
	struct rounds rounds = {0};

	for (int round = 0; round < 5; round++) {
		readings_add(&rounds.means[0], 100 + round);
		readings_add(&rounds.windows[0], 102 + round % 2);
	}
	assert_float_equal(rounds_error_pct(&rounds, 0),
			   100 * EARLY_END * readings_stated_error(&rounds.means[0]) / 102, 1e-9);
	readings_add(&rounds.windows[0], 1000);
	assert_float_equal(rounds_error_pct(&rounds, 0),
			   100 * EARLY_END * readings_stated_error(&rounds.windows[0]) / 102, 1e-9);
}

/* A run ends after five rounds at the earliest, and only after two accurate rounds in a row. */
TEST(two_accurate_rounds_in_a_row_end_a_run)
{
	struct ending ending = {0};

	for (int round = 1; round < LEAST_ROUNDS; round++)
		assert_false(ending_reached(&ending, 0.1, 0.5));
	assert_false(ending_reached(&ending, 0.6, 0.5));
	assert_false(ending_reached(&ending, 0.4, 0.5));
	assert_false(ending_reached(&ending, NAN, 0.5));
	assert_false(ending_reached(&ending, 0.5, 0.5));
	assert_true(ending_reached(&ending, 0.5, 0.5));
}

/* Whether 1.96 stated errors hold the truth, 100, in a run whose rounds scatter by `scatter`. */
static bool holds_the_truth(uint64_t *random, double scatter)
{
	struct rounds rounds = {0};
	struct ending ending = {0};
	double error;

	for (int round = 0; round < MOST_ROUNDS; round++) {
		const double mean = 100 + scatter * noise_normal(random);

		readings_add(&rounds.means[0], mean);
		readings_add(&rounds.windows[0], mean);
		error = rounds_error_pct(&rounds, 0);
		if (ending_reached(&ending, error, 0.5))
			break;
	}
	return fabs(rounds.means[0].mean - 100) <=
	       NORMAL_QUANTILE * error / 100 * rounds.means[0].mean;
}

/* Runs that end as soon as their error is small state it honestly: it holds in 95 % of them. */
TEST(early_ends_keep_the_stated_error)
{
	static const double scatters[] = {0.2, 0.7, 1, 1.4, 2};
	uint64_t random = 1;

	for (size_t i = 0; i < RTE_DIM(scatters); i++) {
		unsigned int held = 0;

		for (unsigned int run = 0; run < RUNS; run++)
			held += holds_the_truth(&random, scatters[i]);
		assert_in_range(held, (unsigned int)(0.945 * RUNS), (unsigned int)(0.98 * RUNS));
	}
}
