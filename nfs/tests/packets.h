/* Creates packets from a description, and checks packets. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/metadata.h"

struct rig;

/* A packet of these bytes. */
struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length);

/* Description of an IPv4 packet; fields default to 0 or as noted. */
struct packet_spec {
	uint32_t source, destination; /* in host byte order; RTE_IPV4(192, 0, 2, 1) */
	uint16_t source_port, destination_port;
	uint8_t protocol; /* UDP when 0 */
	uint8_t ttl;      /* 64 when 0 */
	uint8_t tcp_flags;
	uint16_t id;
	uint16_t fragment; /* RTE_IPV4_HDR_DF_FLAG, RTE_IPV4_HDR_MF_FLAG, offset in 8 bytes */
	uint16_t vlan;     /* tagged when not 0 */
	const void *payload;
	uint16_t payload_length; /* zeros if there is a length but no payload */
	enum nf_side from;
};

/* A packet with correct lengths and checksums. */
struct rte_mbuf *packet_from_spec(struct rig *rig, const struct packet_spec *packet_spec);

/* The side to which a function sent a packet. */
static inline enum nf_side side_of(const struct rte_mbuf *packet)
{
	const struct metadata *metadata = metadata_of_const(packet);

	assert_true(metadata->gate == NF_FORWARD || metadata->gate == NF_BACK);
	return metadata->gate == NF_BACK ? metadata->from : !metadata->from;
}

/* The IPv4 header behind an Ethernet header without tags. */
static inline struct rte_ipv4_hdr *ipv4_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
}

/* Recompute the checksum of a changed header. */
static inline void header_checksum_set(struct rte_ipv4_hdr *ip)
{
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

/* Fail unless it is an IPv4 packet with a correct header checksum. */
void assert_header_checksum(struct rte_mbuf *packet);

/* Whether the checksums of the IPv4 header and, unless fragmented, of UDP or TCP are correct. */
bool checksums_right(struct rte_mbuf *packet);
