/*
 * ACL: permits or denies packets by addresses, protocol and ports, as functions/acl.c does; the
 * first filter that matches decides. A program has a line for each filter, of these tests:
 *
 *     if (acl_protocol(&key, 6) && acl_source(&key, 10, 255, 0, 65535))
 *             return true;
 *
 * Fragments but the first match as if both ports were 0. ARP passes, and IPv6 if the list permits all
 * of it; frames that are not understood are dropped.
 */
#pragma once

#include "xdp/packet.h"

/*
 * What filters compare, read anew for each of them: addresses and protocol from the packet, ports
 * from 16 bits on the stack. Else clang would keep results for later filters, and the kernel's
 * verifier would follow each combination of them through all filters behind, until it gives up.
 */
struct acl_key {
	const volatile __be32 *source, *destination;
	const volatile __u8 *protocol;
	volatile __u16 source_port, destination_port;
};

/* Read the key of a packet if it is IPv4; returns what it is. */
static __always_inline enum packet_type acl_read(const struct xdp_md *ctx, struct acl_key *key)
{
	const struct headers headers = read_headers(ctx);

	key->source_port = 0;
	key->destination_port = 0;
	if (headers.type != PACKET_IPV4)
		return headers.type;
	key->source = &headers.ip->saddr;
	key->destination = &headers.ip->daddr;
	key->protocol = &headers.ip->protocol;
	if (has_ports(&headers)) {
		key->source_port = bpf_ntohs(((const __be16 *)headers.l4)[0]);
		key->destination_port = bpf_ntohs(((const __be16 *)headers.l4)[1]);
	}
	return PACKET_IPV4;
}

/* A mask of 0 is any address. */
static __always_inline bool acl_address(const volatile __be32 *address, __be32 prefix, __be32 mask)
{
	return mask == 0 || (*address & mask) == prefix;
}

static __always_inline bool acl_port(const volatile __u16 *of, __u16 low, __u16 high)
{
	__u16 port;

	if (low == 0 && high == 0xffff)
		return true;
	port = *of;
	return port >= low && port <= high;
}

/* 0 is any protocol. */
static __always_inline bool acl_protocol(const struct acl_key *key, __u8 protocol)
{
	return protocol == 0 || *key->protocol == protocol;
}

static __always_inline bool acl_source(const struct acl_key *key, __be32 prefix, __be32 mask,
				       __u16 low, __u16 high)
{
	return acl_address(key->source, prefix, mask) && acl_port(&key->source_port, low, high);
}

static __always_inline bool acl_destination(const struct acl_key *key, __be32 prefix, __be32 mask,
					    __u16 low, __u16 high)
{
	return acl_address(key->destination, prefix, mask) &&
	       acl_port(&key->destination_port, low, high);
}
