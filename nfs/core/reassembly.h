/*
 * Reassembles IPv4 datagrams from fragments in any order (RFC 791, section 3.2).
 *
 * A fragment whose bytes have all arrived is freed; the others do not suffer. A datagram is freed
 * whole when fragments contradict each other (RFC 1858, RFC 3128; RFC 8200, section 4.5 for IPv6),
 * above REASSEMBLY_PIECES fragments, after a timeout since the first one to arrive, or to make
 * room: when a limit is reached, sources whose datagrams hold most lose their oldest one, so that a
 * flood of fragments leaves other sources their share (stochastic fairness queueing, McKenney
 * 1990). A fragment that arrives again after its datagram was complete waits for the timeout.
 */
#pragma once

#include "core/datagram.h"
#include "core/packet.h"

#define REASSEMBLY_PIECES 64 /* most fragments of a datagram: as many are sent for one packet */

struct reassembly;

/* What becomes of fragments whose datagram is not completed: indices of counters. */
enum {
	REASSEMBLY_DUPLICATES,  /* their bytes had arrived */
	REASSEMBLY_OVERLAPPING, /* of datagrams whose fragments contradict each other */
	REASSEMBLY_EVICTED,     /* of datagrams freed to make room */
	REASSEMBLY_UNASSEMBLED, /* of datagrams that timed out or are too long; or invalid */
	REASSEMBLY_COUNTERS
};

/* What fragments may hold at once. */
struct reassembly_limits {
	uint32_t datagrams, buffers;
	uint64_t bytes; /* of buffers */
	uint64_t timeout_us;
};

/* Usual limits for so many datagrams: four buffers each, but enough for a long one. */
static inline struct reassembly_limits reassembly_limits(uint32_t datagrams, double timeout_s)
{
	const uint32_t buffers = RTE_MAX(4 * datagrams, 2u * REASSEMBLY_PIECES);

	return (struct reassembly_limits){
		.datagrams = datagrams,
		.buffers = buffers,
		.bytes = (uint64_t)buffers * RTE_MBUF_DEFAULT_BUF_SIZE,
		.timeout_us = (uint64_t)(timeout_s * 1e6),
	};
}

/*
 * For a function of this name; NULL after printing why. Fragments that are freed are counted in
 * `counters`, REASSEMBLY_COUNTERS of them.
 */
struct reassembly *reassembly_create(const char *name, const struct reassembly_limits *limits,
				     uint64_t *counters);
void reassembly_destroy(struct reassembly *reassembly); /* NULL is allowed */

/* A datagram that was reassembled. */
struct reassembled {
	struct rte_mbuf *mbuf; /* headers in its first segment as far as its buffer has room */
	uint16_t l3;           /* of its IPv4 header, that of the first fragment with new lengths */
	uint16_t largest;      /* length of its largest fragment, with the IPv4 header */
	uint8_t marks;         /* set of its fragments' ECN marks: sum of 1 << mark */
};

/*
 * Take over a fragment, which arrived on `side`: fragments from different sides are never joined,
 * while their tags and padding may differ. Returns whether it completes a datagram. DF is set if
 * the largest fragment had it: the path carries that length (as in Linux).
 */
bool reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
		    const struct packet *packet, uint8_t side, uint64_t now_us,
		    struct reassembled *whole);

/*
 * Combine the ECN marks of the fragments in the datagram (RFC 3168, section 5.3). False if it must
 * be freed: it is marked as congested, but some fragments do not support ECN.
 */
bool reassembled_join_marks(const struct reassembled *whole);

/* Free some of the datagrams that timed out; to be called once per burst. */
void reassembly_expire(struct reassembly *reassembly, uint64_t now_us);

/* Free all fragments that are held. */
void reassembly_free_all(struct reassembly *reassembly);

/* The datagrams that a reassembly holds, and their limits; for reassembly.c and its tests. */
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
