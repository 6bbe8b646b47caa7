/* Fragments IPv4 datagrams (RFC 791, section 3.2). */
#pragma once

#include "core/metadata.h"

#define FRAGMENTS_MOST 256

/*
 * Fragment a packet, which may be a fragment itself, to at most `mtu` bytes, at least 68. The first
 * fragment is the packet itself; the others are single buffers of `pool`, which have room for at
 * least 68 bytes. All get the packet's Ethernet header and metadata. Returns their number, or a
 * negative errno with the packet unchanged: -ENOMEM if `pool` is empty, -E2BIG above
 * FRAGMENTS_MOST, -EMSGSIZE if it would exceed the largest datagram.
 */
int ipv4_fragment(struct rte_mbuf *mbuf, const struct packet *packet, uint16_t mtu,
		  struct rte_mempool *pool, struct rte_mbuf *fragments[FRAGMENTS_MOST]);

/* Trim a packet to `length` bytes, across its segments. */
void packet_cut(struct rte_mbuf *mbuf, uint32_t length);

/* Trim the frame's padding behind the datagram whose IPv4 header is at `l3`. */
static inline void packet_unpad(struct rte_mbuf *mbuf, uint16_t l3)
{
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	const uint32_t end = l3 + rte_be_to_cpu_16(ip->total_length);

	if (unlikely(rte_pktmbuf_pkt_len(mbuf) > end))
		packet_cut(mbuf, end);
}
