/*
 * Payloads of UDP and TCP, and their replacement by other bytes. Headers stay in place, so that
 * functions on the link still see addresses and ports, and may translate them.
 */
#pragma once

#include "core/metadata.h"

/* Whether it is a whole datagram of UDP or TCP. */
static inline bool payload_is_carried(const struct packet *packet)
{
	return packet->type == PACKET_IPV4 && packet->payload != 0 && !packet->fragment &&
	       (packet->protocol == IPPROTO_UDP || packet->protocol == IPPROTO_TCP);
}

/*
 * Whether the headers can be restored after a change of lengths and checksums: UDP has the length
 * of IPv4, and no checksum is the second form of 0 in ones' complement, which no sender writes.
 */
bool payload_is_restorable(struct rte_mbuf *mbuf, const struct packet *packet);

/*
 * A copy of a packet's headers with `length` bytes of payload, not set yet. NULL without a buffer
 * that is large enough.
 */
struct rte_mbuf *payload_room(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			      const struct packet *packet, uint16_t length);

/* Set lengths and checksums of headers for the new payload, by their change. */
void payload_replaced(struct rte_mbuf *made, const struct packet *packet, const uint8_t *was,
		      uint16_t was_length);

static inline uint8_t *payload_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, uint8_t *, packet->payload);
}
