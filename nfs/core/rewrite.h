/* Replaces an endpoint of a packet, or of the packet that an ICMP error quotes. */
#pragma once

#include "core/packet.h"

/* An address with a port or the identifier of ICMP queries. */
struct endpoint {
	rte_be32_t address;
	rte_be16_t port;
};

enum end { END_SOURCE, END_DESTINATION };

/*
 * The port of UDP and TCP, or the identifier of an ICMP query; the first 8 bytes behind the IPv4
 * header must be present.
 */
struct endpoint endpoint_of(struct rte_mbuf *mbuf, const struct packet *packet, enum end end);

static inline uint8_t icmp_type(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return *rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, packet->l4);
}

/* Replace an endpoint and update all checksums (RFC 3022, section 4.1). */
void endpoint_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		      struct endpoint to);

/* The change of a complemented checksum when an address is replaced (RFC 1624). */
static inline uint32_t address_change(rte_be32_t from, rte_be32_t to)
{
	return (uint16_t)~from + (uint16_t)(~from >> 16) + (to & 0xffff) + (to >> 16);
}

static inline rte_be16_t checksum_after(rte_be16_t checksum, uint32_t changes)
{
	uint32_t sum = (uint16_t)~checksum + changes;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (rte_be16_t)~sum;
}

/* Replace an address that only the IPv4 header's checksum covers. */
void address_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		     rte_be32_t to);

/*
 * Find the endpoints of the packet that an ICMP error quotes; `payload` is the end of the quote.
 * False without ports or with a wrong checksum (RFC 5508, REQ-3).
 */
bool quoted_packet(struct rte_mbuf *mbuf, const struct packet *error, struct packet *quoted);

/* Recompute the checksum of an ICMP message. */
void icmp_checksum_set(struct rte_mbuf *mbuf, const struct packet *packet);
