/*
 * The datagrams that a reassembly holds, and their limits. For reassembly.c, which adds fragments.
 */
#pragma once

#include "core/datagram.h"
#include "core/reassembly.h"

#define PENDING_SOURCES 64 /* classes of source addresses, each with a share */

enum pending_resource { PENDING_DATAGRAMS, PENDING_BUFFERS, PENDING_BYTES, PENDING_RESOURCES };

/* What the fragments of a datagram have in common (RFC 791), without padding. */
struct datagram_key {
	rte_be32_t source, destination;
	rte_be16_t id;
	uint8_t protocol;
	uint8_t side;
};

struct pending {
	TAILQ_ENTRY(pending) by_age;
	TAILQ_ENTRY(pending) of_source;
	LIST_ENTRY(pending) in_bucket;
	struct datagram datagram;
	struct datagram_key key;
	uint64_t begun_us;
	uint64_t holds[PENDING_RESOURCES];
	uint16_t largest; /* length of its largest fragment */
	bool largest_has_df;
	uint8_t marks;
	uint8_t source; /* class of its source address */
};
TAILQ_HEAD(pending_queue, pending);
LIST_HEAD(pending_bucket, pending);

struct reassembly {
	struct pending_bucket *buckets;
	uint32_t bucket_mask;
	uint64_t keys[6]; /* of the hash functions */
	struct pending *slots;
	struct piece *piece_slots;
	struct pending_queue free;
	struct piece_list free_pieces;                   /* one per buffer, and one more */
	struct pending_queue by_age;                     /* the oldest first */
	struct pending_queue of_source[PENDING_SOURCES]; /* the same */
	uint64_t most[PENDING_RESOURCES], held[PENDING_RESOURCES];
	uint64_t held_of_source[PENDING_RESOURCES][PENDING_SOURCES];
	uint64_t timeout_us;
	uint64_t *counters; /* of freed fragments: REASSEMBLY_COUNTERS */
};

/* The datagram of a key, begun if there is none, or only one that timed out. */
struct pending *pending_of(struct reassembly *reassembly, const struct datagram_key *key,
			   uint64_t now_us);

/*
 * Make room for more of a resource: of the sources that hold most of it, the oldest datagrams are
 * freed until the limit is kept.
 */
void pending_make_room(struct reassembly *reassembly, enum pending_resource resource,
		       uint64_t more);

/* What a packet holds. */
void pending_measure(const struct rte_mbuf *mbuf, uint64_t holding[PENDING_RESOURCES]);

/* Add to what a datagram holds, or subtract from it. */
void pending_charge(struct reassembly *reassembly, struct pending *pending,
		    const uint64_t holding[PENDING_RESOURCES], bool more);

/* Forget a datagram whose pieces no longer have packets. */
void pending_forget(struct reassembly *reassembly, struct pending *pending);

/* Free a datagram with all its fragments, which are counted. */
void pending_discard(struct reassembly *reassembly, struct pending *pending, int counter);
