/* One end of a packet, or of the packet that an ICMP error quotes, put in place of another. */
#ifndef NFS_FUNCTIONS_NAT_REWRITE_H
#define NFS_FUNCTIONS_NAT_REWRITE_H

#include "functions/nat/sessions.h"

enum end { END_SOURCE, END_DESTINATION };

/*
 * The port of UDP and TCP, the identifier of an ICMP query, of a packet whose first 8 bytes behind
 * the IPv4 header are there.
 */
struct endpoint endpoint_of(struct rte_mbuf *mbuf, const struct packet *packet, enum end end);

/* What is at a packet's destination, if that is one of the addresses outside; or NULL. */
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

/* The key under which the session of a packet from inside is known. */
struct flow_key key_outward(struct rte_mbuf *mbuf, const struct packet *packet);
/* The same of a packet from outside, by what its destination is mapped to. */
struct flow_key key_inward(struct rte_mbuf *mbuf, const struct packet *packet,
			   const struct mapping *mapping);

/* Put an endpoint in, with all checksums kept right (RFC 3022, section 4.1). */
void endpoint_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		      struct endpoint to);

/* What replacing an address adds to the complement of a checksum over it (RFC 1624). */
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

/* Put in an address alone, where no checksum but the IPv4 header's covers it. */
void address_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		     rte_be32_t to);

/*
 * Where the packet is that an ICMP error quotes, as far as a NAT needs it; `payload` is where the
 * quote ends. False when it has no ports, or a checksum is wrong (RFC 5508, REQ-3).
 */
bool quoted_packet(struct rte_mbuf *mbuf, const struct packet *error, struct packet *quoted);

/* Make the checksum of an ICMP message anew, of whose content any part was changed. */
void icmp_checksum_again(struct rte_mbuf *mbuf, const struct packet *packet);

#endif
