/*
 * The flow keys of a burst: IPv4 packets get a key, IPv6 is put aside, and nf_other() has the rest,
 * counted from `other` on.
 */
#pragma once

#include "core/nf.h"
#include "core/packet.h"

struct flow_burst {
	struct nf *nf;
	unsigned int other; /* counter */
	uint16_t n;         /* packets with a flow */
	uint16_t n_ipv6;
	struct rte_mbuf *ipv6[NF_BURST];
	struct packet ipv6_headers[NF_BURST];
	struct rte_mbuf *packets[NF_BURST];
	uint16_t l3[NF_BURST]; /* offsets of their IPv4 headers */
	struct flow_key keys[NF_BURST];
	uint32_t hashes[NF_BURST];          /* of the keys, for a flow table */
};

/* An empty burst; fields that nearly all bursts share are set here. */
static inline void flow_burst_begin(struct flow_burst *burst, struct nf *nf, unsigned int other)
{
	burst->nf = nf;
	burst->other = other;
	burst->n = burst->n_ipv6 = 0;
	for (uint16_t i = 0; i < NF_BURST; i++)
		burst->l3[i] = sizeof(struct rte_ether_hdr);
}

static inline void flow_burst_add(struct flow_burst *burst, struct rte_mbuf *packet,
				  struct flow_key key)
{
	burst->keys[burst->n] = key;
	burst->packets[burst->n++] = packet;
}

/* Read a packet that is not plain; out of line, because few are. */
bool flow_burst_read_any(struct flow_burst *burst, struct rte_mbuf *packet, struct nf_out *out);

/* Read a packet; true if it has a flow. */
static inline bool flow_burst_read_one(struct flow_burst *burst, struct rte_mbuf *packet,
				       struct nf_out *out)
{
	if (likely(packet_is_plain(packet))) {
		flow_burst_add(burst, packet, packet_plain_flow(packet));
		return true;
	}
	if (!packet_is_plain_ipv6(packet))
		return flow_burst_read_any(burst, packet, out);
	burst->ipv6_headers[burst->n_ipv6] = packet_plain_ipv6(packet);
	burst->ipv6[burst->n_ipv6++] = packet;
	return false;
}

static inline void flow_burst_read(struct flow_burst *burst, struct nf *nf, unsigned int other,
				   struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	flow_burst_begin(burst, nf, other);
	for (uint16_t i = 0; i < n; i++)
		flow_burst_read_one(burst, packets[i], out);
}
