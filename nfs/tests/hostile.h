/*
 * Thousands of hostile packets from a seed: mutated, truncated, segmented, tagged, fragments, ICMP
 * errors. Their bytes end where their memory ends, so that a sanitizer reports every read beyond
 * them.
 */
#pragma once

#include "tests/support.h"

#define HOSTILE_PACKETS 6000

/*
 * Called with every sent packet; may be NULL. `hash.usr` of a packet that is sent unchanged or was
 * changed in place is 1 if its IPv4 header had a correct checksum on arrival.
 */
typedef void (*sent_check)(struct rte_mbuf *sent);

/*
 * Offer them in bursts to both sides of the rig's function; half of their addresses are among the
 * `n` given, which the function uses. Bursts arrive while earlier packets are held.
 */
void offer_hostile(struct rig *rig, const uint32_t *addresses, unsigned int n, sent_check check);

/*
 * Offer many copies of `n` packets in turn, most of them mutated, one per millisecond; then free
 * the packets.
 */
void offer_mutations_of(struct rig *rig, struct rte_mbuf **packets, unsigned int n,
			sent_check check);

static inline void offer_mutations(struct rig *rig, struct rte_mbuf *packet)
{
	offer_mutations_of(rig, &packet, 1, NULL);
}

/* The next of them, for tests that offer packets otherwise; `*random` is a seed, at first not 0. */
struct rte_mbuf *hostile_packet(struct rig *rig, const uint32_t *addresses, unsigned int n,
				uint64_t *random);

/* The same bytes in a new packet of two segments, the first with `first` bytes. */
struct rte_mbuf *in_two(struct rig *rig, struct rte_mbuf *packet, uint16_t first);

/* Copy all segments of a packet to `bytes`, at most `room`; returns its length. */
uint16_t packet_bytes(struct rte_mbuf *packet, void *bytes, uint16_t room);
