/* Mean and error of repeated readings. */
#pragma once

#include <math.h>

#define NORMAL_QUANTILE 1.959964 /* 95 % of a normal distribution lie within this many deviations */

/* A running mean and variance (Welford, 1962). */
struct readings {
	unsigned int n;
	double mean;
	double squares; /* sum of squared differences from the mean */
};

static inline void readings_add(struct readings *readings, double reading)
{
	const double difference = reading - readings->mean;

	readings->n++;
	readings->mean += difference / readings->n;
	readings->squares += difference * (reading - readings->mean);
}

/* Standard error of the mean of independent readings; infinite below two readings. */
static inline double readings_standard_error(const struct readings *readings)
{
	if (readings->n < 2)
		return INFINITY;
	return sqrt(readings->squares / (readings->n - 1) / readings->n);
}

/*
 * 95 % of Student's t distribution lie within plus or minus this: exact to 0.1 % (Abramowitz &
 * Stegun, 1964, 26.7.5).
 */
static inline double student_t(unsigned int freedom)
{
	static const double few[] = {INFINITY, 12.706, 4.303, 3.182, 2.776};
	const double z = NORMAL_QUANTILE, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
	const double n = freedom;

	if (freedom < sizeof(few) / sizeof(few[0]))
		return few[freedom];
	return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

/*
 * By how much a standard error of `n` readings must be wider, so that 1.96 of it hold the truth in
 * 95 % of all cases, as they do with many readings: 1.42 for five.
 */
static inline double few_readings(unsigned int n)
{
	return n < 2 ? INFINITY : student_t(n - 1) / NORMAL_QUANTILE;
}

/* Standard error of the mean, wider for few readings; infinite below two. */
static inline double readings_stated_error(const struct readings *readings)
{
	return readings_standard_error(readings) * few_readings(readings->n);
}
