/* Adds and removes the outer header (RFC 2003, section 3.1). */
#pragma once

#include "core/packet.h"

/*
 * Insert an outer header before the one at `l3`; it is `alike` except for the fields from the inner
 * header and its `id`. False without headroom.
 */
static inline bool add_outer(struct rte_mbuf *mbuf, uint16_t l3, const struct rte_ipv4_hdr *alike,
			     uint16_t id)
{
	char *front = rte_pktmbuf_prepend(mbuf, sizeof(*alike));
	const struct rte_ipv4_hdr *inner;
	struct rte_ipv4_hdr *outer;

	if (!front)
		return false;
	memmove(front, front + sizeof(*outer), l3);
	outer = (struct rte_ipv4_hdr *)(front + l3);
	inner = outer + 1;
	*outer = *alike;
	outer->type_of_service = inner->type_of_service;
	outer->total_length =
		rte_cpu_to_be_16(rte_be_to_cpu_16(inner->total_length) + sizeof(*outer));
	outer->packet_id = rte_cpu_to_be_16(id);
	outer->fragment_offset = inner->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	outer->hdr_checksum = rte_ipv4_cksum(outer);
	return true;
}

/* Remove the header at `l3`; returns its type of service. */
static inline uint8_t remove_outer(struct rte_mbuf *mbuf, uint16_t l3)
{
	const struct rte_ipv4_hdr *outer =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	const uint8_t header = rte_ipv4_hdr_len(outer), service = outer->type_of_service;
	char *front = rte_pktmbuf_mtod(mbuf, char *);

	memmove(front + header, front, l3);
	rte_pktmbuf_adj(mbuf, header);
	return service;
}
