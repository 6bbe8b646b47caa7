/* Tunnel mode of ESP (RFC 4303, section 3.1.2): a whole IPv4 packet behind an outer header. */
#pragma once

#include "functions/esp/packet.h"
#include "functions/ipsec/ipsec.h"

/*
 * A copy of a packet in a tunnel, as esp_wrap() makes it: not encrypted yet, without vector and
 * sequence number. NULL without a buffer or if it does not fit one, which sets `*too_long`.
 */
struct rte_mbuf *tunnel_wrap(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			     const struct packet *packet, const struct ipsec_settings *settings,
			     uint32_t sequence, struct esp_parts *parts, bool *too_long);

/* Take the outer header off a decrypted packet. False unless there is a whole inner packet. */
bool tunnel_unwrap(struct rte_mbuf *mbuf, uint16_t l3);
