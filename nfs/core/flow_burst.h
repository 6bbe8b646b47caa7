/* The flows of a burst: what is IPv4 gets its key, what is not is sent on, what is broken freed. */
#ifndef NFS_CORE_FLOW_BURST_H
#define NFS_CORE_FLOW_BURST_H

#include "core/nf.h"
#include "core/packet.h"

struct flow_burst {
	uint16_t n; /* packets that have a flow */
	uint16_t other, malformed;
	struct rte_mbuf *packets[NF_BURST];
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST]; /* the keys, as rte_hash_lookup_bulk takes them */
};

static inline void flow_burst_add(struct flow_burst *burst, struct rte_mbuf *packet)
{
	burst->wanted[burst->n] = &burst->keys[burst->n];
	burst->packets[burst->n++] = packet;
}

/* Out of line: few packets are not plain. */
void flow_burst_add_any(struct flow_burst *burst, struct rte_mbuf *packet, struct nf_out *out);

static inline void flow_burst_read(struct flow_burst *burst, struct rte_mbuf **packets, uint16_t n,
				   struct nf_out *out)
{
	burst->n = burst->other = burst->malformed = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(!packet_is_plain(packets[i]))) {
			flow_burst_add_any(burst, packets[i], out);
			continue;
		}
		burst->keys[burst->n] = packet_plain_flow(packets[i]);
		flow_burst_add(burst, packets[i]);
	}
}

#endif
