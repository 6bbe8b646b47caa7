/* IPv4 datagrams cut to the size of a network (RFC 791, section 3.2). */
#ifndef NFS_CORE_FRAGMENT_H
#define NFS_CORE_FRAGMENT_H

#include "core/packet.h"

#define FRAGMENTS_MOST 256

/*
 * Cut a packet, which may be a fragment itself, into datagrams of at most `mtu` bytes, at least
 * 68. The first is the packet itself; the others are new, each in one buffer of `pool`, which holds
 * 68 bytes at least, however long the MTU; all have its Ethernet header and its port. How many
 * there are; or a negative errno with the packet as it was: -ENOMEM when `pool` has no more, -E2BIG
 * when it takes more than FRAGMENTS_MOST, -EMSGSIZE when it ends where no datagram can.
 */
int ipv4_fragment(struct rte_mbuf *mbuf, const struct packet *packet, uint16_t mtu,
		  struct rte_mempool *pool, struct rte_mbuf *fragments[FRAGMENTS_MOST]);

/* Drop what is behind `length` bytes, whatever segment they end in. */
void packet_cut(struct rte_mbuf *mbuf, uint32_t length);

/* Drop what pads the frame behind the datagram whose IPv4 header is at `l3`. */
static inline void packet_unpad(struct rte_mbuf *mbuf, uint16_t l3)
{
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	const uint32_t end = l3 + rte_be_to_cpu_16(ip->total_length);

	if (unlikely(rte_pktmbuf_pkt_len(mbuf) > end))
		packet_cut(mbuf, end);
}

#endif
