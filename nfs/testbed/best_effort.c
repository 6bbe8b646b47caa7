#include "testbed/best_effort.h"

#include <stdlib.h>

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

#define LEAST_WINDOWS 3 /* fewer show no change with disturbance */
#define COUNTED_PART 4  /* of the windows of a round, one in so many counts */

/*
 * Typical change of a rate per disturbed core, as a share of it; what windows show is weighed
 * against it, because few, alike windows show hardly anything. In co-runs on a server, other work
 * changed throughput by 12 % in the mean and 31 % at most.
 */
#define TYPICAL_CHANGE 0.2

void round_windows_add(struct round_windows *windows, double disturbance, const double *rates,
		       unsigned int n_loads)
{
	if (windows->n == ROUND_WINDOWS || !isfinite(disturbance))
		return;
	windows->at[windows->n].disturbance = disturbance;
	for (unsigned int i = 0; i < n_loads; i++)
		windows->at[windows->n].rates[i] = rates[i];
	windows->n++;
}

static int compare(const void *one, const void *other)
{
	const double difference = *(const double *)one - *(const double *)other;

	return (difference > 0) - (difference < 0);
}

/* The disturbance up to which `n` windows count. */
static double least_disturbed(const struct round_windows *windows, unsigned int n)
{
	double sorted[ROUND_WINDOWS];

	for (unsigned int i = 0; i < windows->n; i++)
		sorted[i] = windows->at[i].disturbance;
	qsort(sorted, windows->n, sizeof(*sorted), compare);
	return sorted[n - 1];
}

static void add_changes(struct changes *changes, const struct round_windows *windows,
			unsigned int n_loads)
{
	if (changes->n + windows->n > MOST_CHANGES)
		return;
	for (unsigned int i = 1; i < windows->n; i++, changes->n++) {
		changes->at[changes->n].round = changes->rounds;
		changes->at[changes->n].disturbance =
			windows->at[i].disturbance - windows->at[i - 1].disturbance;
		for (unsigned int load = 0; load < n_loads; load++)
			changes->at[changes->n].rates[load] =
				windows->at[i].rates[load] - windows->at[i - 1].rates[load];
	}
	changes->rounds++;
}

bool best_effort_add(struct best_effort *effort, const struct round_windows *windows,
		     unsigned int required, unsigned int n_loads)
{
	const unsigned int n = RTE_MAX(required, windows->n / COUNTED_PART);
	struct readings disturbance = {0}, rates[MOST_LOADS] = {0};
	double most;

	if (windows->n < RTE_MAX(required, (unsigned int)LEAST_WINDOWS))
		return false;
	most = least_disturbed(windows, n);
	for (unsigned int i = 0; i < windows->n; i++) {
		if (windows->at[i].disturbance > most)
			continue;
		readings_add(&disturbance, windows->at[i].disturbance);
		for (unsigned int load = 0; load < n_loads; load++)
			readings_add(&rates[load], windows->at[i].rates[load]);
	}
	readings_add(&effort->disturbance, disturbance.mean);
	for (unsigned int load = 0; load < n_loads; load++)
		readings_add(&effort->means[load], rates[load].mean);
	add_changes(&effort->changes, windows, n_loads);
	return true;
}

/* Root mean square of the change per disturbed core, after the windows are seen. */
static double likely_change(const struct trend *trend, double rate)
{
	const double usual = TYPICAL_CHANGE * rate;
	const double known = usual * usual / (usual * usual + trend->error * trend->error);

	return isfinite(trend->error)
		       ? hypot(known * trend->change, sqrt(known) * trend->error)
		       : usual;
}

double best_effort_error_pct(const struct best_effort *effort, unsigned int load)
{
	const struct readings *means = &effort->means[load];
	const double disturbance = effort->disturbance.mean;
	const struct trend trend = changes_trend(&effort->changes, load);
	double error = readings_stated_error(means);

	if (means->n < 2)
		return INFINITY;
	if (disturbance > 0)
		error = hypot(error, disturbance * likely_change(&trend, means->mean));
	return 100 * EARLY_END * error / means->mean;
}
