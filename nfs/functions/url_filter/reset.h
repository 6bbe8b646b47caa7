/* Resets the TCP connection of a packet that does not go on. */
#pragma once

#include "core/nf.h"
#include "core/packet.h"

/*
 * A reset to the packet's receiver, in place of the packet, or back to its sender as of the
 * receiver (RFC 9293, section 3.5.2). NULL without a buffer.
 */
struct rte_mbuf *reset_forward(struct rte_mempool *pool, struct rte_mbuf *about,
			       const struct packet *packet);
struct rte_mbuf *reset_back(struct rte_mempool *pool, struct rte_mbuf *about,
			    const struct packet *packet);
