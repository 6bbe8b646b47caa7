/*
 * The flows with the most bytes, found in bounded memory by Space-Saving (Metwally, Agrawal and El
 * Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005), with
 * bytes as weights.
 *
 * A flow that has no counter takes over the smallest one, and with it an error of as many bytes as
 * it had. Of N bytes and k counters: a flow with more than N/k bytes has a counter, no error is
 * larger than N/k, and a count is above the flow's bytes by at most its error.
 */
#pragma once

#include "core/flow_index.h"

struct talker {
	struct flow_key flow;
	uint64_t bytes; /* at most those of the flow plus `error` */
	uint64_t error;
	uint64_t packets; /* since the flow has had the counter */
	uint32_t hash;
	uint32_t next;  /* with the same bucket: its index + 1, 0 at the end */
	uint32_t place; /* in the heap */
	uint8_t ends[32]; /* of a flow of IPv6: source and destination */
};

struct top_talkers {
	struct talker *talkers;
	uint32_t *buckets; /* by hash: index of the first talker + 1 */
	uint32_t *heap;    /* indices of talkers; the one with the fewest bytes first */
	uint32_t n, most;
	uint32_t mask;     /* number of buckets - 1 */
	uint64_t replaced; /* flows that lost their counter */
};

/* Room for `most` flows. 0, or -ENOMEM after printing why; they are destroyed either way. */
int top_talkers_create(struct top_talkers *top, const char *name, uint32_t most);
void top_talkers_destroy(struct top_talkers *top);

/* Count a packet of a flow, whose hash is that of its bytes; `ends` are read if it is of IPv6. */
void top_talkers_count(struct top_talkers *top, const struct flow_key *flow, const uint8_t ends[32],
		       uint32_t hash, uint32_t bytes);

/* All talkers, the one with the most bytes first, in memory of the caller; NULL without memory. */
const struct talker **top_talkers_sorted(const struct top_talkers *top);
