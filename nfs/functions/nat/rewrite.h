/* What a NAT looks up for a packet: mappings and session keys of its endpoints. */
#pragma once

#include "core/rewrite.h"
#include "functions/nat/sessions.h"

/* The mapping of a packet's destination, which may have timed out; NULL if there is none. */
struct mapping *mapping_at(const struct sessions *sessions, struct rte_mbuf *mbuf,
			   const struct packet *packet);

/* 0 unless it is TCP. */
static inline uint8_t tcp_flags(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet->protocol != IPPROTO_TCP)
		return 0;
	return rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4)->tcp_flags;
}

/* The session key of a packet from inside. */
struct flow_key key_outward(struct rte_mbuf *mbuf, const struct packet *packet);
/* The session key of a packet from outside, with the endpoint that its destination maps to. */
struct flow_key key_inward(struct rte_mbuf *mbuf, const struct packet *packet,
			   const struct mapping *mapping);
