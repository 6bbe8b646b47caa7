/*
 * Detunnel: takes the outer VLAN tag off every packet, as functions/detunnel.c does: any tag, or
 * that of one VLAN only; packets without a tag pass or are dropped.
 */
#pragma once

#include "xdp/packet.h"

#define ANY_VLAN 4095

/* Take the tag off a packet; false if it is dropped. */
static __always_inline bool detunnel(struct xdp_md *ctx, __u16 vlan, bool untagged_pass)
{
	void *packet = packet_begin(ctx), *end = packet_end(ctx);

	if (packet + ETH_HLEN > end)
		return false;
	if (!is_tag(*(__be16 *)(packet + 2 * ETH_ALEN)))
		return untagged_pass;
	if (packet + ETH_HLEN + TAG_BYTES > end)
		return false;
	if (vlan != ANY_VLAN && (bpf_ntohs(*(__be16 *)(packet + ETH_HLEN)) & VLAN_MASK) != vlan)
		return false;
	copy_addresses(packet + TAG_BYTES, packet);
	return bpf_xdp_adjust_head(ctx, TAG_BYTES) == 0;
}
