/* Congestion marks that come out of a tunnel. */
#ifndef NFS_FUNCTIONS_IP_TUNNEL_CONGESTION_H
#define NFS_FUNCTIONS_IP_TUNNEL_CONGESTION_H

#include "core/ipv4.h"

/*
 * The mark of congestion, carried from the outer header to the inner one (RFC 6040, section 4.2).
 * False when the packet must be freed, for its sender would not understand it.
 */
static inline bool take_congestion_mark(struct rte_ipv4_hdr *inner, uint8_t outer)
{
	const uint8_t had = inner->type_of_service & RTE_IPV4_HDR_ECN_MASK;
	const uint8_t ce = RTE_IPV4_HDR_ECN_CE, ect1 = 1;
	rte_be16_t before, after;

	outer &= RTE_IPV4_HDR_ECN_MASK;
	if (had == 0)
		return outer != ce;
	if (outer != ce && !(outer == ect1 && had != ce))
		return true;
	before = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->type_of_service = (inner->type_of_service & ~RTE_IPV4_HDR_ECN_MASK) | outer;
	after = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->hdr_checksum = checksum_changed(inner->hdr_checksum, before, after);
	return true;
}

#endif
