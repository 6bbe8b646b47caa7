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

/*
 * The same for the source of a plain packet of a protocol, UDP or TCP, that the caller has looked
 * at already: its headers need not be looked for.
 */
static inline void plain_source_rewrite(struct rte_mbuf *mbuf, uint8_t protocol, struct endpoint to)
{
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	const uint32_t address = address_change(ip->src_addr, to.address);
	const uint32_t both = address + (uint16_t)~udp->src_port + to.port;

	ip->hdr_checksum = checksum_after(ip->hdr_checksum, address);
	if (protocol == IPPROTO_TCP) {
		tcp->cksum = checksum_after(tcp->cksum, both);
	} else if (udp->dgram_cksum != 0) {
		udp->dgram_cksum = checksum_after(udp->dgram_cksum, both);
		if (udp->dgram_cksum == 0)
			udp->dgram_cksum = 0xffff; /* 0 would say that there is none (RFC 768) */
	}
	ip->src_addr = to.address;
	udp->src_port = to.port;
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
