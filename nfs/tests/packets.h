/* Packets to put in, made from what a test says of them, and what to ask of those that come out. */
#ifndef NFS_TESTS_PACKETS_H
#define NFS_TESTS_PACKETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/packet.h"

struct rig;

/* A packet from bytes, as they are. */
struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length);

/* What an IPv4 packet is made of; what is not said is 0 or as the comment tells. */
struct made {
	uint32_t source, destination; /* in host order; RTE_IPV4(192, 0, 2, 1) */
	uint16_t source_port, destination_port;
	uint8_t protocol; /* UDP when 0 */
	uint8_t ttl;      /* 64 when 0 */
	uint8_t tcp_flags;
	uint16_t id;
	uint16_t fragment; /* RTE_IPV4_HDR_DF_FLAG, RTE_IPV4_HDR_MF_FLAG, offset in 8 bytes */
	uint16_t vlan;     /* tagged when not 0 */
	const void *payload;
	uint16_t payload_length; /* zeros when there is a length but no payload */
	uint16_t port;           /* NF_INSIDE or NF_OUTSIDE */
};

/* A packet with right lengths and checksums. */
struct rte_mbuf *packet_made(struct rig *rig, const struct made *made);

/* The IPv4 header behind an Ethernet header without tags. */
static inline struct rte_ipv4_hdr *ipv4_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
}

/* Make the checksum of a header right again that was changed. */
static inline void header_checksum_set(struct rte_ipv4_hdr *ip)
{
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

/* Fail unless it is an IPv4 packet, whatever it carries, with a right header checksum. */
void assert_header_checksum(struct rte_mbuf *packet);

/* Whether the IPv4 header checksum, and the one of UDP or TCP when whole, are right. */
bool checksums_right(struct rte_mbuf *packet);

#endif
