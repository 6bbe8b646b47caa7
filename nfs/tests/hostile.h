/*
 * Thousands of packets that nobody should send, from a seed: mutated, cut, in segments, tagged,
 * fragments, errors about anything. Their bytes end where their memory ends, so that a sanitizer
 * sees whoever reads past them.
 */
#ifndef NFS_TESTS_HOSTILE_H
#define NFS_TESTS_HOSTILE_H

#include "tests/support.h"

#define HOSTILE_PACKETS 6000

/*
 * Sees every packet that is sent, unless it is NULL. `hash.usr` of one that is sent as it came, or
 * changed in place, is 1 if its IPv4 header had a right checksum then.
 */
typedef void (*sent_check)(struct rte_mbuf *sent);

/*
 * Offer them in bursts to both sides of the function on the rig; half of the addresses in them are
 * of the `n` given, which mean something to it. What it keeps is under way while others come.
 */
void offer_hostile(struct rig *rig, const uint32_t *addresses, unsigned int n, sent_check check);

/*
 * Offer as many copies of `n` packets, one of each in turn, most of them spoiled at some place;
 * then free the packets. A millisecond goes by from one to the next.
 */
void offer_mutations_of(struct rig *rig, struct rte_mbuf **packets, unsigned int n,
			sent_check check);

static inline void offer_mutations(struct rig *rig, struct rte_mbuf *packet)
{
	offer_mutations_of(rig, &packet, 1, NULL);
}

/* The same bytes in a new packet of two segments, the first of which has `first` bytes. */
struct rte_mbuf *in_two(struct rig *rig, struct rte_mbuf *packet, uint16_t first);

/* The whole packet in one piece, at most `room` bytes; its length. */
uint16_t packet_bytes(struct rte_mbuf *packet, void *bytes, uint16_t room);

#endif
