/* Packets of a burst that belong to a connection or may open one. */
#pragma once

#include "core/nf.h"
#include "core/packet.h"
#include "functions/flow_tracker/states.h"

struct candidates {
	struct rte_mbuf *packets[NF_BURST];
	struct flow_key keys[NF_BURST]; /* the same for both directions */
	const void *key_pointers[NF_BURST];
	uint8_t ends[NF_BURST]; /* the sender: 0 if the key is in its direction */
	uint8_t kind[NF_BURST]; /* kind of TCP packet */
	uint16_t n;
};

/* End 0 is the one with the lower address, then port; keys are in its direction. */
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
	candidates->key_pointers[at] = &candidates->keys[at];
	candidates->ends[at] = reversed;
	if (packet->protocol == IPPROTO_TCP)
		candidates->kind[at] = (uint8_t)tcp_kind(
			rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4)
				->tcp_flags);
}
