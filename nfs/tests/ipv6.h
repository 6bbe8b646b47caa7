/* Makes packets of IPv6. */
#pragma once

#include "core/packet.h"
#include "tests/support.h"

/* Addresses begin with 2001:db8::/32 and end with a number. */
struct ipv6_spec {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
	uint8_t protocol; /* of what follows the extension headers; UDP when 0 */
	uint8_t first;    /* of the first extension header */
	const void *extensions;
	uint16_t extension_bytes;
	const void *payload;
	uint16_t payload_length;
	uint8_t tcp_flags;
	enum nf_side from;
};

static inline void ipv6_address(uint8_t to[16], uint32_t end)
{
	const rte_be32_t number = rte_cpu_to_be_32(end);

	memset(to, 0, 16);
	memcpy(to, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
	memcpy(to + 12, &number, sizeof(number));
}

/* A packet with correct lengths; the last extension header must lead to `protocol`. */
static inline struct rte_mbuf *ipv6_packet(struct rig *rig, const struct ipv6_spec *spec)
{
	const uint8_t protocol = spec->protocol ? spec->protocol : IPPROTO_UDP;
	const uint16_t l4 = 54 + spec->extension_bytes;
	const uint16_t header = protocol == IPPROTO_TCP ? 20 : 8;
	uint8_t bytes[2048] = {[12] = 0x86, [13] = 0xdd};
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(bytes + 14);
	rte_be16_t *ports = (rte_be16_t *)(bytes + l4);
	struct rte_mbuf *packet;

	*ip = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = rte_cpu_to_be_16(spec->extension_bytes + header +
						spec->payload_length),
		.proto = spec->extension_bytes ? spec->first : protocol,
		.hop_limits = 64,
	};
	ipv6_address(ip->src_addr, spec->source);
	ipv6_address(ip->dst_addr, spec->destination);
	if (spec->extension_bytes)
		memcpy(bytes + 54, spec->extensions, spec->extension_bytes);
	ports[0] = rte_cpu_to_be_16(spec->source_port);
	ports[1] = rte_cpu_to_be_16(spec->destination_port);
	if (protocol == IPPROTO_TCP) {
		bytes[l4 + 12] = 5 << 4;
		bytes[l4 + 13] = spec->tcp_flags;
	}
	if (spec->payload)
		memcpy(bytes + l4 + header, spec->payload, spec->payload_length);
	packet = packet_of(rig, bytes, l4 + header + spec->payload_length);
	metadata_begin(packet, spec->from, 0);
	return packet;
}
