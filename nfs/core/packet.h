/*
 * Headers of a packet, read without trusting it.
 *
 * `packet_parse` answers what a packet is; only what it says is there may be touched. Headers that
 * lie in several segments, or are longer than the packet, are MALFORMED, never read past.
 */
#ifndef NFS_CORE_PACKET_H
#define NFS_CORE_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

enum packet_type {
	PACKET_IPV4,
	PACKET_IPV6,      /* nothing beyond the Ethernet header was looked at */
	PACKET_OTHER,     /* ARP and so on */
	PACKET_MALFORMED, /* shorter than it says, or says what cannot be */
};

/* VLAN tags that are skipped: one, or two with 802.1ad. */
#define PACKET_MOST_TAGS 2

/*
 * Where the headers are, as offsets from the start of the packet: they stay right when the packet's
 * data moves. `l4` and `payload` are 0 where there is no such header: a later fragment, a protocol
 * other than UDP, TCP and ICMP.
 */
struct packet {
	enum packet_type type;
	uint16_t l3;
	uint16_t l4;
	uint16_t payload;        /* of UDP, TCP or ICMP */
	uint16_t payload_length; /* as the IPv4 header tells, not what pads the frame */
	uint8_t protocol;
	bool fragment;       /* a part of a datagram, the first one too */
	bool later_fragment; /* not the first part: it has no ports */
};

/* What identifies a flow; no padding that is not zero, so that it can be hashed and compared whole.
 */
struct flow_key {
	rte_be32_t source, destination;
	rte_be16_t source_port, destination_port; /* 0 where there are none */
	uint8_t protocol;
	uint8_t zero[3];
};

struct packet packet_parse(const struct rte_mbuf *mbuf);

static inline struct rte_ipv4_hdr *packet_ipv4(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, packet->l3);
}

/* UDP and TCP begin alike: with their ports. NULL where the packet has none. */
static inline rte_be16_t *packet_ports(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet->l4 == 0 || (packet->protocol != IPPROTO_UDP && packet->protocol != IPPROTO_TCP))
		return NULL;
	return rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, packet->l4);
}

/* The payload that lies in the first segment; its length there, 0 when there is none. */
static inline uint16_t packet_payload(struct rte_mbuf *mbuf, const struct packet *packet,
				      uint8_t **payload)
{
	uint16_t here;

	if (packet->payload == 0)
		return 0;
	here = rte_pktmbuf_data_len(mbuf) - packet->payload;
	*payload = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, packet->payload);
	return here < packet->payload_length ? here : packet->payload_length;
}

/* The flow of an IPv4 packet. */
static inline struct flow_key packet_flow(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const rte_be16_t *ports = packet_ports(mbuf, packet);
	struct flow_key key = {
		.source = ip->src_addr,
		.destination = ip->dst_addr,
		.source_port = ports ? ports[0] : 0,
		.destination_port = ports ? ports[1] : 0,
		.protocol = ip->next_proto_id,
	};

	return key;
}

/* The same flow seen from the other end. */
static inline struct flow_key flow_reversed(const struct flow_key *key)
{
	struct flow_key back = {
		.source = key->destination,
		.destination = key->source,
		.source_port = key->destination_port,
		.destination_port = key->source_port,
		.protocol = key->protocol,
	};

	return back;
}

/* RFC 1624, equation 3: a checksum after one 16-bit word of what it covers has changed. */
static inline rte_be16_t checksum_changed(rte_be16_t checksum, rte_be16_t before, rte_be16_t after)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~before + after;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (rte_be16_t)~sum;
}

static inline rte_be16_t checksum_changed32(rte_be16_t checksum, rte_be32_t before,
					    rte_be32_t after)
{
	checksum = checksum_changed(checksum, (rte_be16_t)before, (rte_be16_t)after);
	return checksum_changed(checksum, (rte_be16_t)(before >> 16), (rte_be16_t)(after >> 16));
}

#endif
