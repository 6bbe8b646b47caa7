/*
 * Network service headers (RFC 8300), as core/nsh.h writes them: an outer Ethernet header with the
 * packet's addresses, a base header of MD type 2, the label, then the packet.
 */
#pragma once

#include "xdp/packet.h"

#define NSH_BYTES 8
#define NSH_ETHER_TYPE 0x894f
#define NSH_BASE 0x0fc20203 /* version 0, TTL 63, 2 words; MD type 2, Ethernet follows */
#define PUSHED_BYTES (ETH_HLEN + NSH_BYTES)

/* SPI << 8 | SI of a packet; 0, which no label is, without a header as the rack writes it. */
static __always_inline __u32 nsh_label(const struct xdp_md *ctx)
{
	const void *packet = packet_begin(ctx), *base = packet + ETH_HLEN;

	if (packet + PUSHED_BYTES + ETH_HLEN > packet_end(ctx) ||
	    *(const __be16 *)(packet + 2 * ETH_ALEN) != bpf_htons(NSH_ETHER_TYPE) ||
	    *(const __be32 *)base != bpf_htonl(NSH_BASE))
		return 0;
	return bpf_ntohl(*(const __be32 *)(base + 4));
}

/* Whether a packet has no such header, nor a damaged one. */
static __always_inline bool nsh_absent(const struct xdp_md *ctx)
{
	const void *packet = packet_begin(ctx);

	return packet + ETH_HLEN <= packet_end(ctx) &&
	       *(const __be16 *)(packet + 2 * ETH_ALEN) != bpf_htons(NSH_ETHER_TYPE);
}

/* Take off a header that nsh_label() found. */
static __always_inline bool nsh_pop(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, PUSHED_BYTES) == 0;
}

/* Put a header in front of a packet. False, with the packet unchanged, if it has no room. */
static __always_inline bool nsh_push(struct xdp_md *ctx, __u32 label)
{
	void *packet;

	if (bpf_xdp_adjust_head(ctx, -PUSHED_BYTES) != 0)
		return false;
	packet = packet_begin(ctx);
	if (packet + PUSHED_BYTES + ETH_HLEN > packet_end(ctx))
		return false;
	copy_addresses(packet, packet + PUSHED_BYTES);
	*(__be16 *)(packet + 2 * ETH_ALEN) = bpf_htons(NSH_ETHER_TYPE);
	*(__be32 *)(packet + ETH_HLEN) = bpf_htonl(NSH_BASE);
	*(__be32 *)(packet + ETH_HLEN + 4) = bpf_htonl(label);
	return true;
}
