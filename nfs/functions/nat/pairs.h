/*
 * Packets whose protocol has no ports that a NAT may change: GRE, ESP and SCTP. Only addresses are
 * translated; what comes back from a host goes to the one inside host that sends to it by the same
 * external address (GRE, RFC 2784, and ESP, RFC 4303), or by it and the same ports (SCTP, RFC 9260,
 * whose checksum does not cover addresses), of which fragments other than the first have no ports: none is
 * taken.
 */
#pragma once

#include "core/rewrite.h"

struct pairs;

/*
 * Room for `most` pairs, of one inside host for a sixteenth of them, each kept for a time after its
 * last packet; NULL after printing why.
 */
struct pairs *pairs_create(uint32_t most, uint64_t timeout_us);
void pairs_destroy(struct pairs *pairs);

static inline bool pairs_take(const struct packet *packet)
{
	return packet->type == PACKET_IPV4 &&
	       (packet->protocol == IPPROTO_GRE || packet->protocol == IPPROTO_ESP ||
		(packet->protocol == IPPROTO_SCTP && !packet->fragment));
}

enum pair_result { PAIR_TRANSLATED, PAIR_TAKEN, PAIR_FULL, PAIR_UNKNOWN, PAIR_CUT };

/* Translate the source of a packet from inside, to an external address of ours. */
enum pair_result pair_outward(struct pairs *pairs, struct rte_mbuf *mbuf,
			      const struct packet *packet, rte_be32_t external, uint64_t now_us);
/* Translate the destination of a packet from outside, if it is of a pair. */
enum pair_result pair_inward(struct pairs *pairs, struct rte_mbuf *mbuf,
			     const struct packet *packet, uint64_t now_us);
