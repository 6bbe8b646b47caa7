#include <stdlib.h>

#include "testbed/best_effort.h"
#include "tests/noise.h"
#include "tests/support.h"

#define RUNS 150
#define ROUNDS 20
#define REQUIRED 4

static struct best_effort effort;
static struct round_windows windows;

static void begin(void)
{
	effort = (struct best_effort){0};
	windows = (struct round_windows){0};
}

static void add_one(struct round_windows *windows, double disturbance, double rate)
{
	round_windows_add(windows, disturbance, &rate, 1);
}

/* Of 16 windows, the four least disturbed count. */
TEST(the_least_disturbed_windows_count)
{
	begin();
	for (int i = 0; i < 16; i++)
		add_one(&windows, 0.1 * (16 - i), 100 + i);
	assert_true(best_effort_add(&effort, &windows, REQUIRED, 1));
	assert_float_equal(effort.means[0].mean, 113.5, 1e-9);
	assert_float_equal(effort.disturbance.mean, 0.25, 1e-9);
	assert_true(isinf(best_effort_error_pct(&effort, 0)));
}

/* A round with too few windows, or with windows in which a worker hardly ran, does not count. */
TEST(unusable_rounds_do_not_count)
{
	begin();
	for (int i = 0; i < 16; i++)
		add_one(&windows, INFINITY, 100);
	for (int i = 0; i < REQUIRED - 1; i++)
		add_one(&windows, 0.1, 100);
	assert_false(best_effort_add(&effort, &windows, REQUIRED, 1));
	assert_int_equal(effort.means[0].n, 0);
}

/* Rates that fall by 10 per disturbed core show it, whatever the speed of each round. */
TEST(trends_are_found_within_rounds)
{
	struct changes *changes = calloc(1, sizeof(*changes));
	struct trend trend;
	uint64_t random = 7;

	assert_non_null(changes);
	assert_true(isinf(changes_trend(changes, 0).error));
	for (changes->rounds = 0; changes->rounds < 10; changes->rounds++)
		for (int i = 0; i < 20; i++, changes->n++) {
			const double x = noise_normal(&random);

			changes->at[changes->n].round = changes->rounds;
			changes->at[changes->n].disturbance = x;
			changes->at[changes->n].rates[0] = -10 * x + noise_normal(&random);
			changes->at[changes->n].rates[1] = -10 * x;
			changes->at[changes->n].rates[2] = i % 4 == 0 ? -10 * x : 0;
		}
	trend = changes_trend(changes, 0);
	assert_float_equal(trend.change, -10, 4 * trend.error);
	assert_true(trend.error < 0.2);
	trend = changes_trend(changes, 1);
	assert_float_equal(trend.change, -10, 1e-9);
	assert_true(trend.error < 1e-9);
	/* a bench that mostly does all that its rate allows */
	trend = changes_trend(changes, 2);
	assert_true(trend.change < 0 && trend.change > -10);
	assert_true(trend.error > 0 && trend.error < 10);
	changes->at[3].rates[0] += 1000; /* the clock changed */
	trend = changes_trend(changes, 0);
	assert_float_equal(trend.change, -10, 0.5);
	free(changes);
}

/* Windows that are all alike show no change: then a fifth per core is assumed. */
TEST(a_typical_change_is_assumed)
{
	begin();
	for (int i = 0; i < 16; i++)
		add_one(&windows, 0.5, 100);
	for (int round = 0; round < 5; round++)
		assert_true(best_effort_add(&effort, &windows, REQUIRED, 1));
	assert_float_equal(best_effort_error_pct(&effort, 0), EARLY_END * 10, 1e-6);
}

/* A machine with other work, on which an undisturbed rate is 1. */
struct busy {
	double least, most; /* disturbance, cores */
	double cost;        /* share of the rate lost per disturbed core */
	double rounds;      /* scatter of rounds */
	double windows;     /* scatter of windows */
};

/* Disturbance and noise of a window depend on those of the one before. */
static void simulate_round(const struct busy *busy, struct round_windows *windows, uint64_t *random)
{
	const double level = busy->least + (busy->most - busy->least) * noise_uniform(random);
	const double speed = 1 + busy->rounds * noise_normal(random);
	double x = noise_normal(random), y = noise_normal(random);

	windows->n = 0;
	for (int i = 0; i < PATIENCE_WINDOWS; i++) {
		double disturbance;

		x = 0.7 * x + sqrt(1 - 0.49) * noise_normal(random);
		y = 0.7 * y + sqrt(1 - 0.49) * noise_normal(random);
		disturbance = fmax(level * (1 + 0.25 * x), 0);
		add_one(windows, disturbance,
			speed * (1 - busy->cost * disturbance) * (1 + busy->windows * y));
	}
}

/* Whether 1.96 stated errors hold the truth; adds to the sums. */
static bool holds_the_truth(const struct busy *busy, uint64_t *random, double *square,
			    double *stated)
{
	double error, mean;

	begin();
	for (int round = 0; round < ROUNDS; round++) {
		simulate_round(busy, &windows, random);
		assert_true(best_effort_add(&effort, &windows, REQUIRED, 1));
	}
	mean = effort.means[0].mean;
	error = best_effort_error_pct(&effort, 0) / 100 * mean;
	*square += (mean - 1) * (mean - 1) / RUNS;
	*stated += error / RUNS;
	return fabs(mean - 1) <= NORMAL_QUANTILE * error;
}

/*
 * The stated error holds the truth at least as often as stated, also where disturbance lowers the
 * rates by up to a third, and is not much larger than what runs show.
 */
TEST(the_stated_error_holds_the_truth)
{
	static const struct busy machines[] = {
		{0, 0.01, 0, 0.005, 0.01},    {0.02, 0.1, 0, 0.02, 0.02},
		{0.1, 0.4, 0.05, 0.005, 0.02}, {0.1, 0.4, 0.2, 0.02, 0.05},
		{0.5, 0.9, 0.2, 0.005, 0.01}, {1.5, 1.8, 0.2, 0.02, 0.05},
		{1.5, 1.8, 0.3, 0.05, 0.2},   {1.5, 1.8, 0.05, 0.05, 0.2},
	};
	uint64_t random = 1;

	for (size_t i = 0; i < RTE_DIM(machines); i++) {
		double square = 0, stated = 0;
		unsigned int held = 0;

		for (int run = 0; run < RUNS; run++)
			held += holds_the_truth(&machines[i], &random, &square, &stated);
		print_message("cost %.2f: held in %u of %d, error %.2f %%, stated %.2f %%\n",
			      machines[i].cost, held, RUNS, 100 * sqrt(square), 100 * stated);
		assert_in_range(held, (unsigned int)(0.94 * RUNS), RUNS);
		assert_true(stated < 4 * sqrt(square));
	}
}
