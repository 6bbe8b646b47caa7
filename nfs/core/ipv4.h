/* Checks and changes of IPv4 headers. */
#pragma once

#include "core/packet.h"

/*
 * Whether the header checksum is right: the header's words add up to 0 modulo 0xffff, also in
 * longer words and in any byte order (RFC 1071, section 2).
 */
static inline bool ipv4_checksum_is_right(const struct rte_ipv4_hdr *ip)
{
	const uint8_t *bytes = (const uint8_t *)ip;
	uint64_t sum = 0;

	if (unlikely(ip->version_ihl != RTE_IPV4_VHL_DEF))
		return rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)) == 0xffff;
	for (size_t at = 0; at < sizeof(*ip); at += sizeof(uint32_t)) {
		uint32_t word;

		memcpy(&word, bytes + at, sizeof(word));
		sum += word;
	}
	return sum % UINT16_MAX == 0;
}

/*
 * Whether an address can belong to one host (RFC 1812, section 5.3.7): not in 0/8, loopback
 * (127/8), multicast (224/4) or reserved (240/4, broadcast).
 */
static inline bool ipv4_is_host(rte_be32_t address)
{
	const uint8_t first = (uint8_t)(rte_be_to_cpu_32(address) >> 24);

	return first != 0 && first != 127 && first < 224;
}

/*
 * Whether a packet with the address may be forwarded: that of one host which is not link-local
 * (169.254/16: RFC 3927, section 7).
 */
static inline bool ipv4_is_routed(rte_be32_t address)
{
	return ipv4_is_host(address) && rte_be_to_cpu_32(address) >> 16 != 0xa9fe;
}

/* ICMP error types, about which no error may be sent (RFC 1122, section 3.2.2). */
static inline bool icmp_is_error(uint8_t type)
{
	return (type >= 3 && type <= 5) || type == 11 || type == 12;
}

/*
 * Decrement the time to live, which must not be 0, and update the checksum: subtracting one from a
 * word's high byte adds one there in the complemented sum, where the other zero, 0xffff, carries,
 * too (RFC 1624, section 3).
 */
static inline void ipv4_hop(struct rte_ipv4_hdr *ip)
{
	const uint32_t sum = (uint32_t)ip->hdr_checksum + RTE_BE16(0x0100);

	ip->time_to_live--;
	ip->hdr_checksum = (rte_be16_t)(sum + (sum >= UINT16_MAX));
}

/*
 * Copy the ECN mark of a tunnel's header to the header of a packet in it (RFC 6040, section 4.2).
 * False if the packet must be freed, because its sender does not support ECN.
 */
static inline bool ipv4_join_mark(struct rte_ipv4_hdr *inner, uint8_t outer)
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
