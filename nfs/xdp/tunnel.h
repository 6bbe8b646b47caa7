/*
 * Tunnel: puts a VLAN tag on every packet, as functions/tunnel.c does. A packet that has two tags
 * already is dropped.
 */
#pragma once

#include "xdp/packet.h"

static __always_inline bool has_two_tags(const struct xdp_md *ctx)
{
	const void *packet = packet_begin(ctx);

	return packet + ETH_HLEN + TAG_BYTES <= packet_end(ctx) &&
	       is_tag(*(const __be16 *)(packet + 2 * ETH_ALEN)) &&
	       is_tag(*(const __be16 *)(packet + 2 * ETH_ALEN + TAG_BYTES));
}

/* Put a tag on a packet; false if it is dropped. */
static __always_inline bool tunnel(struct xdp_md *ctx, __u16 vlan, __u8 priority)
{
	void *packet;

	if (has_two_tags(ctx) || bpf_xdp_adjust_head(ctx, -TAG_BYTES) != 0)
		return false;
	packet = packet_begin(ctx);
	if (packet + ETH_HLEN + TAG_BYTES > packet_end(ctx))
		return false;
	copy_addresses(packet, packet + TAG_BYTES);
	*(__be32 *)(packet + 2 * ETH_ALEN) =
		bpf_htonl((__u32)ETH_P_8021Q << 16 | (__u32)priority << 13 | vlan);
	return true;
}
