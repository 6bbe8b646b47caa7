#include "testbed/changes.h"

#include "testbed/statistics.h"

#define ITERATIONS 20
#define LARGE 1.345      /* deviations; normal noise then has an error 5 % above the least */
#define DEVIATION 1.2533 /* standard deviations of normal noise per mean of its size */

static double rest(const struct changes *changes, unsigned int load, unsigned int i, double change)
{
	return changes->at[i].rates[load] - change * changes->at[i].disturbance;
}

/* The size from which the rest of a change counts as large. */
static double large(const struct changes *changes, unsigned int load, double change)
{
	double sum = 0;

	for (unsigned int i = 0; i < changes->n; i++)
		sum += fabs(rest(changes, load, i, change));
	return LARGE * DEVIATION * sum / changes->n;
}

/* A better estimate, from weighted least squares. */
static double improved(const struct changes *changes, unsigned int load, double change)
{
	const double most = large(changes, load, change);
	double xx = 0, xy = 0;

	for (unsigned int i = 0; i < changes->n; i++) {
		const double size = fabs(rest(changes, load, i, change));
		const double x = changes->at[i].disturbance;
		const double weight = size > most ? most / size : 1;

		xx += weight * x * x;
		xy += weight * x * changes->at[i].rates[load];
	}
	return xx > 0 ? xy / xx : 0;
}

static double error_of(const struct changes *changes, unsigned int load, double change)
{
	const double most = large(changes, load, change), rounds = changes->rounds;
	double squares = 0, of_round = 0, xx = 0;
	unsigned int small = 0;

	for (unsigned int i = 0; i < changes->n; i++) {
		const double left = rest(changes, load, i, change);
		const double x = changes->at[i].disturbance;

		of_round += x * fmax(fmin(left, most), -most);
		xx += x * x;
		small += fabs(left) <= most;
		if (i + 1 == changes->n || changes->at[i + 1].round != changes->at[i].round) {
			squares += of_round * of_round;
			of_round = 0;
		}
	}
	if (changes->rounds < 2 || !(xx > 0))
		return INFINITY;
	return few_readings(changes->rounds) * sqrt(rounds / (rounds - 1) * squares) /
	       (xx * small / changes->n);
}

struct trend changes_trend(const struct changes *changes, unsigned int load)
{
	struct trend trend = {.error = INFINITY};

	if (changes->n == 0)
		return trend;
	for (int i = 0; i < ITERATIONS; i++)
		trend.change = improved(changes, load, trend.change);
	trend.error = error_of(changes, load, trend.change);
	return trend;
}
