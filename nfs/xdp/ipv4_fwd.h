/*
 * IPv4Fwd: forwards by the longest prefix that matches the destination: new MAC addresses, time to
 * live decremented, checksum updated. What is not IPv4, has no route, or has no time left is
 * dropped without an ICMP error. Each route becomes one comparison of constants.
 */
#pragma once

#include "xdp/checksum.h"

/* Prefix and mask in network order. */
struct ipv4_route {
	__be32 prefix, mask;
	__u8 hop;
};

#define NO_HOP 256

/*
 * Routes are sorted by length, the longest first; `n` is a constant: the loop is unrolled. `rules`
 * are the places of their counts, where rules are counted.
 */
static __always_inline __u32 ipv4_hop_of(__be32 address, const struct ipv4_route *routes,
					 const __u32 *rules, __u32 n)
{
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < n; i++)
		if ((address & routes[i].mask) == routes[i].prefix) {
			COUNT_RULE(rules[i]);
			return routes[i].hop;
		}
	return NO_HOP;
}

/* From 02:00:00:00:00:01 to 02:00:00:01:00:HOP. */
static __always_inline void put_hop(void *packet, __u32 hop)
{
	__be32 *words = packet;

	words[0] = bpf_htonl(0x02000001);
	words[1] = bpf_htonl(hop << 16 | 0x0200);
	words[2] = bpf_htonl(0x00000001);
}

/* Forward a packet; false if it is dropped. */
static __always_inline bool ipv4_fwd(struct xdp_md *ctx, const struct ipv4_route *routes,
				     const __u32 *rules, __u32 n)
{
	const struct headers headers = read_headers(ctx);
	/* read before rules are counted: behind that the kernel would want the packet's length checked again */
	void *packet = packet_begin(ctx);
	__u32 hop, before;
	__u16 *first; /* time to live and protocol */

	if (headers.type != PACKET_IPV4 || headers.ip->ttl <= 1)
		return false;
	hop = ipv4_hop_of(headers.ip->daddr, routes, rules, n);
	if (hop == NO_HOP)
		return false;
	put_hop(packet, hop);
	first = (__u16 *)&headers.ip->ttl;
	before = *first;
	headers.ip->ttl--;
	headers.ip->check = checksum_after(headers.ip->check, word_change(before, *first));
	return true;
}
