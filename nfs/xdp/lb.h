/*
 * LB: replaces the destination of a flow by that of a backend, chosen from a table by the split
 * hash, and updates checksums, as functions/lb.c does with a table whose size is a power of two.
 *
 * Only packets to `address` are balanced, or all if it is 0. Other than IPv4 passes. Fragments are
 * hashed without ports; the first, which has the UDP or TCP header, gets a new checksum there.
 */
#pragma once

#include "xdp/checksum.h"
#include "xdp/split.h"

/* `size` is a power of two, a constant; the table has addresses in network order. */
static __always_inline bool lb(struct xdp_md *ctx, const __be32 *table, __u32 size, __u32 seed,
			       __be32 address)
{
	const struct headers headers = read_headers(ctx);
	__be32 backend;
	__u64 change;

	if (headers.type != PACKET_IPV4)
		return headers.type != PACKET_MALFORMED;
	if (address && headers.ip->daddr != address)
		return true;
	backend = table[split_hash(&headers, seed) & (size - 1)];
	change = word_change(headers.ip->daddr, backend);
	headers.ip->check = checksum_after(headers.ip->check, change);
	headers.ip->daddr = backend;
	if (has_ports(&headers))
		change_l4_checksum(&headers, change);
	return true;
}
