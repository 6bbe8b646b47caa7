#pragma once

#include "core/packet.h"

/*
 * A reset of a TCP connection, about a segment of it: to its receiver, in place of the segment, or
 * `back` to its sender as of the receiver (RFC 9293, section 3.5.2). NULL without a buffer.
 */
struct rte_mbuf *tcp_reset(struct rte_mempool *pool, struct rte_mbuf *about,
			   const struct packet *packet, bool back);
