/* Packets of a burst that have a connection, or may begin one. */
#ifndef NFS_FUNCTIONS_FLOW_TRACKER_CANDIDATES_H
#define NFS_FUNCTIONS_FLOW_TRACKER_CANDIDATES_H

#include "core/nf.h"
#include "core/packet.h"
#include "functions/flow_tracker/states.h"

struct candidates {
	struct rte_mbuf *packets[NF_BURST];
	struct flow_key keys[NF_BURST]; /* alike for both directions */
	const void *wanted[NF_BURST];
	uint8_t ends[NF_BURST]; /* which is the sender: 0 when the key is as seen from there */
	uint8_t kind[NF_BURST]; /* of TCP */
	uint16_t n;
};

/* The end whose address, then port, is the lower is end 0, from whom keys are seen. */
static inline void candidates_add(struct candidates *candidates, struct rte_mbuf *mbuf,
				  const struct packet *packet)
{
	const uint16_t at = candidates->n++;
	struct flow_key key = packet_flow(mbuf, packet);
	const bool reversed =
		key.source > key.destination ||
		(key.source == key.destination && key.source_port > key.destination_port);

	candidates->packets[at] = mbuf;
	candidates->keys[at] = reversed ? flow_reversed(&key) : key;
	candidates->wanted[at] = &candidates->keys[at];
	candidates->ends[at] = reversed;
	if (packet->protocol == IPPROTO_TCP)
		candidates->kind[at] = (uint8_t)tcp_kind(
			rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4)
				->tcp_flags);
}

#endif
