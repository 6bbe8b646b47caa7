/* The fast path of a NAT: outbound plain packets of known sessions. */
#pragma once

#include "core/nf.h"
#include "functions/nat/rewrite.h"

/*
 * Rewrite the source of a plain packet with a known protocol, UDP or TCP: its headers need not be
 * searched.
 */
static inline void plain_source_rewrite(struct rte_mbuf *mbuf, uint8_t protocol, struct endpoint to)
{
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	const uint32_t address = address_change(ip->src_addr, to.address);
	const uint32_t both = address + (uint16_t)~udp->src_port + to.port;

	ip->hdr_checksum = checksum_after(ip->hdr_checksum, address);
	if (protocol == IPPROTO_TCP) {
		tcp->cksum = checksum_after(tcp->cksum, both);
	} else if (udp->dgram_cksum != 0) {
		udp->dgram_cksum = checksum_after(udp->dgram_cksum, both);
		if (udp->dgram_cksum == 0)
			udp->dgram_cksum = 0xffff; /* 0 would mean no checksum (RFC 768) */
	}
	ip->src_addr = to.address;
	udp->src_port = to.port;
}

/* Translate a plain packet of a known session that is not hairpinned. */
static inline void translate_plain(struct rte_mbuf *mbuf, struct session *session, uint64_t now_us)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *,
								sizeof(struct rte_ether_hdr));
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);

	if (likely(ip->next_proto_id == IPPROTO_UDP)) {
		session->last_us = now_us;
		plain_source_rewrite(mbuf, IPPROTO_UDP, session_outside(session));
		return;
	}
	session_seen(session, true, tcp->tcp_flags, now_us);
	plain_source_rewrite(mbuf, IPPROTO_TCP, session_outside(session));
}
