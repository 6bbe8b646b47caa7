/* How long packets took: a histogram whose buckets are at most 1/16 of their value wide. */
#pragma once

#include <stdint.h>

#define LATENCY_SUBS 16 /* buckets of each power of two */
#define LATENCY_BUCKETS (LATENCY_SUBS * 29)

/* Only one thread adds at a time. Zeroed, it is empty. */
struct latencies {
	uint64_t n, most;
	double sum;
	uint64_t buckets[LATENCY_BUCKETS];
};

void latencies_add(struct latencies *latencies, uint32_t value);
/* Add all of `more`. */
void latencies_merge(struct latencies *latencies, const struct latencies *more);
/* The value that this share of all is at most, such as 0.99; 0 if there are none. */
double latencies_quantile(const struct latencies *latencies, double share);
double latencies_mean(const struct latencies *latencies);
