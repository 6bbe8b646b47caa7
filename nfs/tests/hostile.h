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
 * Offer them in bursts to both sides of the function on the rig; half of the addresses in them are
 * of the `n` given, which mean something to it. `check`, where it is not NULL, sees what is sent.
 */
void offer_hostile(struct rig *rig, const uint32_t *addresses, unsigned int n,
		   void (*check)(struct rte_mbuf *sent));

/* Offer as many copies of a packet, most of them spoiled at some place; then free it. */
void offer_mutations(struct rig *rig, struct rte_mbuf *packet);

/* The same bytes in a new packet of two segments, the first of which has `first` bytes. */
struct rte_mbuf *in_two(struct rig *rig, struct rte_mbuf *packet, uint16_t first);

/* The whole packet in one piece, at most `room` bytes; its length. */
uint16_t packet_bytes(struct rte_mbuf *packet, void *bytes, uint16_t room);

#endif
