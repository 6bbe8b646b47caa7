/* ECN marks of decapsulated packets, including reassembled ones. */
#ifndef NFS_FUNCTIONS_IP_TUNNEL_CONGESTION_H
#define NFS_FUNCTIONS_IP_TUNNEL_CONGESTION_H

#include "core/ipv4.h"

/*
 * Copy the ECN mark of the outer header to the inner one (RFC 6040, section 4.2). False if the
 * packet must be freed, because its sender does not support ECN.
 */
static inline bool copy_congestion_mark(struct rte_ipv4_hdr *inner, uint8_t outer)
{
	const uint8_t inner_mark = inner->type_of_service & RTE_IPV4_HDR_ECN_MASK;
	const uint8_t ce = RTE_IPV4_HDR_ECN_CE, ect1 = 1;
	rte_be16_t before, after;

	outer &= RTE_IPV4_HDR_ECN_MASK;
	if (inner_mark == 0)
		return outer != ce;
	if (outer != ce && !(outer == ect1 && inner_mark != ce))
		return true;
	before = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->type_of_service = (inner->type_of_service & ~RTE_IPV4_HDR_ECN_MASK) | outer;
	after = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->hdr_checksum = checksum_changed(inner->hdr_checksum, before, after);
	return true;
}

/* Store the mark of a fragment in its segments until the datagram is complete. */
static inline void store_congestion_mark(struct rte_mbuf *fragment, uint8_t type_of_service)
{
	const uint32_t mark = 1u << (type_of_service & RTE_IPV4_HDR_ECN_MASK);

	for (; fragment; fragment = fragment->next)
		fragment->hash.usr = mark;
}

/*
 * Combine the marks of all fragments in the datagram's IPv4 header at `l3` (RFC 3168, section 5.3).
 * False if it must be freed, because some fragments do not support ECN.
 */
static inline bool join_congestion_marks(struct rte_mbuf *datagram, uint16_t l3)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(datagram, struct rte_ipv4_hdr *, l3);
	uint32_t marks = 0;

	for (; datagram; datagram = datagram->next)
		marks |= datagram->hash.usr;
	if (!(marks & 1u << RTE_IPV4_HDR_ECN_CE))
		return true;
	ip->type_of_service |= RTE_IPV4_HDR_ECN_CE;
	return !(marks & 1u << 0);
}

#endif
