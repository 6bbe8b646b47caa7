/*
 * The hash by which all platforms share packets among edges and backends: words of the flow mixed
 * by 32-bit additions, shifts and exclusive or (Jenkins's one-at-a-time, over words).
 */
#pragma once

#include "xdp/packet.h"

static __always_inline __u32 split_mixed(__u32 hash, __u32 word)
{
	hash += word;
	hash += hash << 10;
	return hash ^ hash >> 6;
}

/* The hash of a packet, 0 to 65535; 0 of what is not IPv4. Fragments have no ports. */
static __always_inline __u32 split_hash(const struct headers *headers, __u32 salt)
{
	__u32 hash = salt, ports = 0;

	if (headers->type != PACKET_IPV4)
		return 0;
	if (!headers->fragment && has_ports(headers))
		ports = bpf_ntohl(*(const __be32 *)headers->l4);
	hash = split_mixed(hash, bpf_ntohl(headers->ip->saddr));
	hash = split_mixed(hash, bpf_ntohl(headers->ip->daddr));
	hash = split_mixed(hash, ports);
	hash = split_mixed(hash, headers->ip->protocol);
	hash += hash << 3;
	hash ^= hash >> 11;
	hash += hash << 15;
	return hash >> 16;
}
