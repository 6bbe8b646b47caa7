#include "functions/monitor/top_talkers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "core/memory.h"

int top_talkers_create(struct top_talkers *top, const char *name, uint32_t most)
{
	const uint32_t buckets = rte_align32pow2(2 * most);

	*top = (struct top_talkers){
		.talkers = nf_zalloc_for(name, most * sizeof(*top->talkers)),
		.buckets = nf_zalloc_for(name, buckets * sizeof(*top->buckets)),
		.heap = nf_zalloc_for(name, most * sizeof(*top->heap)),
		.most = most,
		.mask = buckets - 1,
	};
	return top->talkers && top->buckets && top->heap ? 0 : -ENOMEM;
}

void top_talkers_destroy(struct top_talkers *top)
{
	nf_free(top->talkers);
	nf_free(top->buckets);
	nf_free(top->heap);
}

static inline uint64_t bytes_at(const struct top_talkers *top, uint32_t place)
{
	return top->talkers[top->heap[place]].bytes;
}

static inline void put(struct top_talkers *top, uint32_t place, uint32_t talker)
{
	top->heap[place] = talker;
	top->talkers[talker].place = place;
}

/* Restore the heap's order after the talker at `place` has got more bytes. */
static void sift_down(struct top_talkers *top, uint32_t place)
{
	const uint32_t talker = top->heap[place];
	const uint64_t bytes = top->talkers[talker].bytes;
	uint32_t child;

	while ((child = 2 * place + 1) < top->n) {
		if (child + 1 < top->n && bytes_at(top, child + 1) < bytes_at(top, child))
			child++;
		if (bytes <= bytes_at(top, child))
			break;
		put(top, place, top->heap[child]);
		place = child;
	}
	put(top, place, talker);
}

/* Restore it after a talker was put last. */
static void sift_up(struct top_talkers *top, uint32_t place)
{
	const uint32_t talker = top->heap[place];
	const uint64_t bytes = top->talkers[talker].bytes;

	while (place > 0 && bytes < bytes_at(top, (place - 1) / 2)) {
		put(top, place, top->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(top, place, talker);
}

static void link_talker(struct top_talkers *top, uint32_t talker, uint32_t hash)
{
	uint32_t *bucket = &top->buckets[hash & top->mask];

	top->talkers[talker].hash = hash;
	top->talkers[talker].next = *bucket;
	*bucket = talker + 1;
}

static void unlink_talker(struct top_talkers *top, uint32_t talker)
{
	uint32_t *at = &top->buckets[top->talkers[talker].hash & top->mask];

	while (*at != talker + 1)
		at = &top->talkers[*at - 1].next;
	*at = top->talkers[talker].next;
}

/* Give a flow without a counter a free one, or the smallest. */
static void take_over(struct top_talkers *top, const struct flow_key *flow, const uint8_t ends[32],
		      uint32_t hash, uint32_t bytes)
{
	const bool full = top->n == top->most;
	const uint32_t talker = full ? top->heap[0] : top->n;
	struct talker *taken = &top->talkers[talker];
	const uint64_t error = full ? taken->bytes : 0;

	if (full)
		unlink_talker(top, talker);
	taken->flow = *flow;
	taken->bytes = error + bytes;
	taken->error = error;
	taken->packets = 1;
	if (flow->family == FLOW_IPV6)
		memcpy(taken->ends, ends, sizeof(taken->ends));
	link_talker(top, talker, hash);
	if (full) {
		top->replaced++;
		put(top, 0, talker);
		sift_down(top, 0);
	} else {
		put(top, top->n++, talker);
		sift_up(top, talker);
	}
}

void top_talkers_count(struct top_talkers *top, const struct flow_key *flow, const uint8_t ends[32],
		       uint32_t hash, uint32_t bytes)
{
	for (uint32_t at = top->buckets[hash & top->mask]; at; at = top->talkers[at - 1].next) {
		struct talker *talker = &top->talkers[at - 1];

		if (!flow_entry_has(talker, flow))
			continue;
		talker->bytes += bytes;
		talker->packets++;
		sift_down(top, talker->place);
		return;
	}
	take_over(top, flow, ends, hash, bytes);
}

/* Order of the bytes of flows; addresses of IPv6 are not in them, but a hash. */
static int by_flow(const struct talker *one, const struct talker *other)
{
	struct flow_key keys[2] = {one->flow, other->flow};
	int order = memcmp(one->ends, other->ends, sizeof(one->ends));

	if (one->flow.family != other->flow.family || one->flow.family != FLOW_IPV6)
		return memcmp(&one->flow, &other->flow, sizeof(one->flow));
	for (int i = 0; i < 2; i++)
		keys[i].no_checksum = keys[i].source = keys[i].destination = 0;
	return order ? order : memcmp(&keys[0], &keys[1], sizeof(keys[0]));
}

/* More bytes first; among equals the order of the flows. */
static int by_bytes(const void *a, const void *b)
{
	const struct talker *one = *(const struct talker *const *)a;
	const struct talker *other = *(const struct talker *const *)b;

	if (one->bytes != other->bytes)
		return one->bytes < other->bytes ? 1 : -1;
	return by_flow(one, other);
}

const struct talker **top_talkers_sorted(const struct top_talkers *top)
{
	const struct talker **sorted = malloc(top->most * sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < top->n; i++)
		sorted[i] = &top->talkers[i];
	if (sorted)
		qsort(sorted, top->n, sizeof(*sorted), by_bytes);
	return sorted;
}
