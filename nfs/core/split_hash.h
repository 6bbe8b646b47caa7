/*
 * The hash that splits flows: behind a function with several ways on, between replicas, and over
 * backends. Every platform computes the same one, from additions, shifts and exclusive ors of 32
 * bits (Jenkins' one-at-a-time, by words): the same packet takes the same way wherever it is split.
 */
#pragma once

#include "core/packet.h"

#define SPLIT_RANGE 65536u /* values are below it */

static inline uint32_t split_hash_mix(uint32_t hash, uint32_t word)
{
	hash += word;
	hash += hash << 10;
	return hash ^ hash >> 6;
}

/* The value of a flow: addresses and ports in host byte order. */
static inline uint32_t split_hash_of(uint32_t salt, uint32_t source, uint32_t destination,
				     uint32_t ports, uint32_t protocol)
{
	uint32_t hash = split_hash_mix(salt, source);

	hash = split_hash_mix(hash, destination);
	hash = split_hash_mix(hash, ports);
	hash = split_hash_mix(hash, protocol);
	hash += hash << 3;
	hash ^= hash >> 11;
	hash += hash << 15;
	return hash >> 16;
}

/*
 * The value of a packet, below SPLIT_RANGE: 0 of what is not IPv4. Ports are those of UDP and TCP;
 * of a fragment, the first included, they are 0, so that all parts of a datagram have one value.
 */
static inline uint32_t split_hash(struct rte_mbuf *mbuf, const struct packet *packet, uint32_t salt)
{
	const struct rte_ipv4_hdr *ip;
	const rte_be16_t *ports;
	uint32_t both = 0;

	if (unlikely(!packet_has_ipv4(packet)))
		return 0;
	ip = packet_ipv4(mbuf, packet);
	ports = packet->fragment ? NULL : packet_ports(mbuf, packet);
	if (ports)
		both = (uint32_t)rte_be_to_cpu_16(ports[0]) << 16 | rte_be_to_cpu_16(ports[1]);
	return split_hash_of(salt, rte_be_to_cpu_32(ip->src_addr), rte_be_to_cpu_32(ip->dst_addr),
			     both, ip->next_proto_id);
}
