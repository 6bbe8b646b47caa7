#include "core/latency.h"

/* Values below 16 have a bucket each; then each power of two has 16. */
static unsigned int bucket_of(uint32_t value)
{
	unsigned int power;

	if (value < LATENCY_SUBS)
		return value;
	power = 31 - (unsigned int)__builtin_clz(value);
	return (power - 3) * LATENCY_SUBS + (value >> (power - 4)) - LATENCY_SUBS;
}

/* The middle of a bucket. */
static double value_of(unsigned int bucket)
{
	const unsigned int power = bucket / LATENCY_SUBS + 3;
	double width;

	if (bucket < LATENCY_SUBS)
		return bucket;
	width = (double)(1ull << (power - 4));
	return (LATENCY_SUBS + bucket % LATENCY_SUBS) * width + (width - 1) / 2;
}

void latencies_add(struct latencies *latencies, uint32_t value)
{
	latencies->n++;
	latencies->sum += value;
	if (value > latencies->most)
		latencies->most = value;
	latencies->buckets[bucket_of(value)]++;
}

void latencies_merge(struct latencies *latencies, const struct latencies *more)
{
	latencies->n += more->n;
	latencies->sum += more->sum;
	if (more->most > latencies->most)
		latencies->most = more->most;
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++)
		latencies->buckets[i] += more->buckets[i];
}

double latencies_quantile(const struct latencies *latencies, double share)
{
	double below = 0;

	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		below += (double)latencies->buckets[i];
		if (latencies->n > 0 && below >= share * (double)latencies->n)
			return value_of(i);
	}
	return 0;
}

double latencies_mean(const struct latencies *latencies)
{
	return latencies->n ? latencies->sum / (double)latencies->n : 0;
}
