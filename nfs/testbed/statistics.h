/* Mean and standard error of repeated readings. */
#ifndef NFS_TESTBED_STATISTICS_H
#define NFS_TESTBED_STATISTICS_H

#include <math.h>

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

#endif
