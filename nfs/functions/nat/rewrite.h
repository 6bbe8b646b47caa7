/* Replaces an endpoint of a packet, or of the packet that an ICMP error quotes. */
#ifndef NFS_FUNCTIONS_NAT_REWRITE_H
#define NFS_FUNCTIONS_NAT_REWRITE_H

#include "functions/nat/sessions.h"

enum end { END_SOURCE, END_DESTINATION };

/*
 * The port of UDP and TCP, or the identifier of an ICMP query; the first 8 bytes behind the IPv4
 * header must be present.
 */
struct endpoint endpoint_of(struct rte_mbuf *mbuf, const struct packet *packet, enum end end);

/* The mapping of a packet's destination, which may have timed out; NULL if there is none. */
struct mapping *mapping_at(const struct sessions *sessions, struct rte_mbuf *mbuf,
			   const struct packet *packet);

static inline uint8_t icmp_type(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return *rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, packet->l4);
}

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
 * Parse the packet that an ICMP error quotes, as far as NAT needs it; `payload` is the end of the
 * quote. False without ports or with a wrong checksum (RFC 5508, REQ-3).
 */
bool quoted_packet(struct rte_mbuf *mbuf, const struct packet *error, struct packet *quoted);

/* Recompute the checksum of an ICMP message. */
void icmp_checksum_set(struct rte_mbuf *mbuf, const struct packet *packet);

#endif
