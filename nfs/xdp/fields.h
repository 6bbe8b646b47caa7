/* The fields of a packet that traffic expressions look at, in host order. */
#pragma once

#include "xdp/packet.h"

struct fields {
	bool tagged;
	__u16 vlan; /* of the outer tag */
	bool ip;
	__u32 source, destination; /* 0 unless IPv4, as is the protocol */
	__u8 protocol;
	bool has_ports; /* UDP or TCP, and no fragment */
	__u16 source_port, destination_port;
};

static __always_inline struct fields fields_of(const struct headers *headers)
{
	struct fields fields = {.tagged = headers->tagged, .vlan = headers->vlan};

	if (headers->type != PACKET_IPV4)
		return fields;
	fields.ip = true;
	fields.source = bpf_ntohl(headers->ip->saddr);
	fields.destination = bpf_ntohl(headers->ip->daddr);
	fields.protocol = headers->ip->protocol;
	if (headers->fragment || !has_ports(headers))
		return fields;
	fields.has_ports = true;
	fields.source_port = bpf_ntohs(((const __be16 *)headers->l4)[0]);
	fields.destination_port = bpf_ntohs(((const __be16 *)headers->l4)[1]);
	return fields;
}
