/* What peers of FlowClassifier do with a packet. */
#pragma once

#include "core/packet.h"

/* The codepoint of the service that many flows of the traffic belong to: calls. */
static inline uint8_t codepoint_of(rte_be16_t source_port)
{
	const uint16_t port = rte_be_to_cpu_16(source_port);

	return port >= 16384 && port < 32768 ? 46 << 2 : 0;
}

static inline void put_codepoint(struct rte_mbuf *packet, uint8_t codepoint)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *,
							  sizeof(struct rte_ether_hdr));
	const uint8_t service = codepoint | (ip->type_of_service & RTE_IPV4_HDR_ECN_MASK);

	if (service == ip->type_of_service)
		return;
	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, rte_cpu_to_be_16(ip->type_of_service),
					    rte_cpu_to_be_16(service));
	ip->type_of_service = service;
}
