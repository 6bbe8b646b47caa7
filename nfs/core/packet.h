/*
 * Parses packet headers without trusting them.
 *
 * Only headers that `packet_parse` found may be accessed. Headers that span segments, or exceed the
 * packet, are MALFORMED and never read beyond its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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
	PACKET_IPV6, /* plain, or with `l4` 0 until packet_behind_extensions() */
	PACKET_ARP,
	PACKET_OTHER, /* no function understands it: other types, or more tags than are skipped */
	PACKET_MALFORMED, /* shorter than its headers say, or with invalid headers */
};

/* VLAN tags that are skipped: one, or two with 802.1ad. */
#define PACKET_MOST_TAGS 2

/*
 * Offsets of headers from the start of the packet, which stay valid when its data moves. `l4` and
 * `payload` are 0 without such a header: non-initial fragments, protocols other than UDP, TCP and
 * ICMP. A malformed packet has a nonzero `l3` if its IPv4 header is valid and only the rest is not.
 */
struct packet {
	enum packet_type type;
	uint16_t l3;
	uint16_t l4;
	uint16_t payload;        /* of UDP, TCP or ICMP */
	uint16_t payload_length; /* by the IPv4 header, without the frame's padding */
	uint8_t protocol;
	bool fragment;             /* any part of a datagram, including the first */
	bool non_initial_fragment; /* not the first part: it has no ports */
};

/*
 * The key of a flow, without padding so that it can be hashed and compared as bytes. Its fields are
 * in the order of the IPv4 header: for a plain packet it is a copy of 16 bytes with two fields
 * cleared.
 *
 * IPv6 has the same key, with a hash of the addresses in place of them, which may be those of one
 * direction only (packet_flow_ipv6()).
 */
#define FLOW_IPV6 6
struct flow_key {
	uint8_t family; /* 0, or FLOW_IPV6 */
	uint8_t protocol;
	uint16_t no_checksum; /* 0; of IPv6 bits of the hash */
	rte_be32_t source, destination;
	rte_be16_t source_port, destination_port; /* 0 without ports */
};

struct packet packet_parse_any(const struct rte_mbuf *mbuf);

/*
 * The headers of an IPv6 packet, whose `l3` is known; `protocol` is that behind the extension
 * headers. MALFORMED with `l3` 0, besides what is too short: a hop-by-hop header that is not the
 * first one (RFC 8200, section 4.1), several fragment headers, a first fragment without all headers
 * (RFC 7112), and a fragment that no host takes (RFC 8200, section 4.5). A datagram in one fragment
 * (RFC 6946) is whole. Of other fragments `protocol` is that of the first header behind theirs.
 */
struct packet packet_parse_ipv6(const struct rte_mbuf *mbuf, uint16_t l3);

/* Whether four bytes equal `wanted` under `mask`: one comparison for several fields. */
static inline bool bytes_are(const void *bytes, const uint8_t mask[4], const uint8_t wanted[4])
{
	uint32_t all, bits, same;

	memcpy(&all, bytes, sizeof(all));
	memcpy(&bits, mask, sizeof(bits));
	memcpy(&same, wanted, sizeof(same));
	return (all & bits) == same;
}

/*
 * Whether a packet is untagged IPv4 without options and not truncated; the rest is not checked,
 * which is enough for forwarding.
 */
static inline bool packet_is_plain_ipv4(const struct rte_mbuf *mbuf)
{
	static const uint8_t type_and_version[] = {0x08, 0x00, RTE_IPV4_VHL_DEF, 0},
			     byte_mask[] = {0xff, 0xff, 0xff, 0};
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(ethernet + 1);
	uint32_t total;

	if (rte_pktmbuf_data_len(mbuf) < sizeof(*ethernet) + sizeof(*ip) ||
	    !bytes_are(&ethernet->ether_type, byte_mask, type_and_version))
		return false;
	total = rte_be_to_cpu_16(ip->total_length);
	return total >= sizeof(*ip) && sizeof(*ethernet) + total <= rte_pktmbuf_pkt_len(mbuf);
}

/*
 * Whether a packet is plain, as nearly all are: untagged UDP or TCP in IPv4 without options, not a
 * fragment, valid, with its headers in one segment. packet_plain() then returns the headers.
 */
static inline bool packet_is_plain(const struct rte_mbuf *mbuf)
{
	static const uint8_t type_and_version[] = {0x08, 0x00, RTE_IPV4_VHL_DEF, 0},
			     byte_mask[] = {0xff, 0xff, 0xff, 0},
			     whole_udp[] = {0, 0, 0, IPPROTO_UDP},
			     whole_tcp[] = {0, 0, 0, IPPROTO_TCP},
			     fragment_and_protocol[] = {0x3f, 0xff, 0, 0xff};
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(ethernet + 1);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);
	const uint32_t here = rte_pktmbuf_data_len(mbuf);
	uint32_t headers = sizeof(*ethernet) + sizeof(*ip) + sizeof(struct rte_udp_hdr), end;

	if (here < headers || !bytes_are(&ethernet->ether_type, byte_mask, type_and_version))
		return false;
	if (!bytes_are(&ip->fragment_offset, fragment_and_protocol, whole_udp)) {
		if (!bytes_are(&ip->fragment_offset, fragment_and_protocol, whole_tcp) ||
		    here < sizeof(*ethernet) + sizeof(*ip) + sizeof(*tcp) || tcp->data_off < 5 << 4)
			return false;
		headers = sizeof(*ethernet) + sizeof(*ip) + (tcp->data_off >> 4) * 4;
		if (here < headers)
			return false;
	}
	end = sizeof(*ethernet) + rte_be_to_cpu_16(ip->total_length);
	return headers <= end && end <= rte_pktmbuf_pkt_len(mbuf);
}

/* The headers of a plain packet. */
static inline struct packet packet_plain(const struct rte_mbuf *mbuf)
{
	const uint16_t l3 = sizeof(struct rte_ether_hdr), l4 = l3 + sizeof(struct rte_ipv4_hdr);
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);
	const uint16_t payload = l4 + (ip->next_proto_id == IPPROTO_UDP ? sizeof(struct rte_udp_hdr)
									: (tcp->data_off >> 4) * 4);

	return (struct packet){
		.type = PACKET_IPV4,
		.l3 = l3,
		.l4 = l4,
		.payload = payload,
		.payload_length = l3 + rte_be_to_cpu_16(ip->total_length) - payload,
		.protocol = ip->next_proto_id,
	};
}

static inline struct packet packet_parse(const struct rte_mbuf *mbuf)
{
	return likely(packet_is_plain(mbuf)) ? packet_plain(mbuf) : packet_parse_any(mbuf);
}

/* Headers that are parsed, also behind the extension headers of IPv6. */
static inline struct packet packet_behind_extensions(const struct rte_mbuf *mbuf,
						     struct packet packet)
{
	return unlikely(packet.type == PACKET_IPV6 && packet.l4 == 0)
		       ? packet_parse_ipv6(mbuf, packet.l3)
		       : packet;
}

/*
 * Whether the IPv4 header is valid, whatever follows: enough for forwarding. An initial fragment
 * may hold only 8 bytes, too few for a TCP header (RFC 791).
 */
static inline bool packet_has_ipv4(const struct packet *packet)
{
	return likely(packet->type == PACKET_IPV4) ||
	       (packet->type == PACKET_MALFORMED && packet->l3 != 0);
}

static inline struct rte_ipv4_hdr *packet_ipv4(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, packet->l3);
}

/*
 * Whether an IP packet carries other packets, or bytes that only its receiver can read, so that
 * filters of payloads do not understand it: IP in IP, GRE, ESP, EtherIP, IPComp, L2TP, MPLS, and
 * what experiments carry.
 */
static inline bool packet_is_opaque(const struct packet *packet)
{
	switch (packet->protocol) {
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
	case IPPROTO_GRE:
	case IPPROTO_ESP:
	case 94:
	case 97:
	case IPPROTO_ENCAP:
	case IPPROTO_COMP:
	case 115:
	case 137:
	case 253:
	case 254:
		return true;
	default:
		return false;
	}
}

/* The ports, with which both UDP and TCP begin. NULL without ports. */
static inline rte_be16_t *packet_ports(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet->l4 == 0 || (packet->protocol != IPPROTO_UDP && packet->protocol != IPPROTO_TCP))
		return NULL;
	return rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, packet->l4);
}

/* The payload in the first segment; returns its length there, 0 without payload. */
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

static inline const struct rte_ipv6_hdr *packet_ipv6(const struct rte_mbuf *mbuf,
						     const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv6_hdr *, packet->l3);
}

/* Fill in secrets that nobody outside can compute. */
void draw_secrets(uint64_t *secrets, size_t n);

/* Draw the secrets of packet_flow_ipv6() and flow_hash_of(), once. */
extern uint64_t packet_flow_secrets[4];
void packet_flow_begin(void);

/*
 * NH of UMAC (Black et al., CRYPTO 1999), folded and multiplied: who does not know the secrets
 * cannot choose keys that collide more often than others. Without the last multiplication, keys in
 * sequence would often cluster.
 */
static inline uint32_t flow_hash(const uint64_t secrets[2], const struct flow_key *key)
{
	uint64_t halves[2];

	memcpy(halves, key, sizeof(halves));
	halves[0] += secrets[0];
	halves[1] += secrets[1];
	halves[0] = halves[0] * halves[1] ^
		    (uint64_t)((unsigned __int128)halves[0] * halves[1] >> 64);
	return halves[0] * 0x9e3779b97f4a7c15ull >> 32;
}

/* The same with the secrets of all tables, of a key in a table of DPDK; `n` and `initial` are not used. */
uint32_t flow_hash_of(const void *key, uint32_t n, uint32_t initial);

/*
 * The flow between addresses of IPv6, which are hashed with secrets that nobody outside knows, by NH
 * of UMAC. All 128 bits of two pairs of addresses are the same with a probability of 2^-64 at most.
 * The key has room for 80: the halves, folded, and 16 bits of the upper one. No bound is proven for
 * these, but a change of any one of the 128 changes them, so that no part of the sum may be kept by
 * a choice of addresses where the rest is not looked at. `ports` are both, as in a packet. The key is
 * written in whole words: as a value it would be built field by field.
 */
static inline void flow_between_ipv6(struct flow_key *key, const uint8_t *source,
				     const uint8_t *destination, uint8_t protocol, uint32_t ports)
{
	const uint64_t *secrets = packet_flow_secrets;
	uint64_t words[4], fold, upper;
	unsigned __int128 sum;

	memcpy(words, source, 16);
	memcpy(words + 2, destination, 16);
	sum = (unsigned __int128)(words[0] + secrets[0]) * (words[1] + secrets[1]) +
	      (unsigned __int128)(words[2] + secrets[2]) * (words[3] + secrets[3]);
	fold = (uint64_t)sum ^ (uint64_t)(sum >> 64);
	/* the fields of the key in their order: as one number, which is written without a detour */
	upper = (uint64_t)ports << 32 | ((uint32_t)(sum >> 64) << 16 | (uint16_t)fold);
	sum = (unsigned __int128)upper << 64 | (fold & ~UINT64_C(0xffff)) |
	      (unsigned int)protocol << 8 | FLOW_IPV6;
	memcpy(key, &sum, sizeof(*key));
}

/*
 * Whether a packet is plain IPv6: untagged UDP or TCP without extension headers, valid, with its
 * headers in one segment. packet_plain_ipv6() then returns them, packet_plain_flow_ipv6() the flow.
 */
static inline bool packet_is_plain_ipv6(const struct rte_mbuf *mbuf)
{
	static const uint8_t type_and_version[] = {0x86, 0xdd, 0x60, 0},
			     mask[] = {0xff, 0xff, 0xf0, 0};
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(ethernet + 1);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);
	const uint32_t here = rte_pktmbuf_data_len(mbuf), l4 = sizeof(*ethernet) + sizeof(*ip);
	uint32_t headers = l4 + sizeof(struct rte_udp_hdr), end;

	if (here < headers || !bytes_are(&ethernet->ether_type, mask, type_and_version))
		return false;
	end = l4 + rte_be_to_cpu_16(ip->payload_len);
	if (end > rte_pktmbuf_pkt_len(mbuf))
		return false;
	if (likely(ip->proto == IPPROTO_UDP))
		return headers <= end;
	if (ip->proto != IPPROTO_TCP || here < l4 + sizeof(*tcp) || tcp->data_off < 5 << 4)
		return false;
	headers = l4 + (tcp->data_off >> 4) * 4;
	return headers <= here && headers <= end;
}

static inline struct packet packet_plain_ipv6(const struct rte_mbuf *mbuf)
{
	const uint16_t l3 = sizeof(struct rte_ether_hdr), l4 = l3 + sizeof(struct rte_ipv6_hdr);
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv6_hdr *, l3);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);
	const uint16_t payload = l4 + (ip->proto == IPPROTO_UDP ? sizeof(struct rte_udp_hdr)
								: (tcp->data_off >> 4) * 4);

	return (struct packet){
		.type = PACKET_IPV6,
		.l3 = l3,
		.l4 = l4,
		.payload = payload,
		.payload_length = l4 + rte_be_to_cpu_16(ip->payload_len) - payload,
		.protocol = ip->proto,
	};
}

static inline void packet_plain_flow_ipv6(const struct rte_mbuf *mbuf, struct flow_key *key)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv6_hdr *,
								sizeof(struct rte_ether_hdr));
	uint32_t ports;

	memcpy(&ports, ip + 1, sizeof(ports));
	flow_between_ipv6(key, ip->src_addr, ip->dst_addr, ip->proto, ports);
}

/* The flow of an IPv6 packet, whose headers are parsed. */
struct flow_key packet_flow_ipv6(struct rte_mbuf *mbuf, const struct packet *packet);

/*
 * Write the same for both directions: that of the end with the lower address, then port, as numbers
 * of this machine. Whether the packet comes from the other end.
 */
bool packet_connection_ipv6(struct rte_mbuf *mbuf, const struct packet *packet,
			    struct flow_key *key);

/* The flow of UDP or TCP in IPv4 without options at `l3`. */
static inline struct flow_key packet_flow_at(const struct rte_mbuf *mbuf, uint16_t l3)
{
	static const struct flow_key key_mask = {0, 0xff, 0, ~0u, ~0u, 0xffff, 0xffff};
	struct flow_key key;
	uint64_t halves[2], masks[2];

	memcpy(halves,
	       rte_pktmbuf_mtod_offset(mbuf, const void *,
				       l3 + offsetof(struct rte_ipv4_hdr, time_to_live)),
	       sizeof(halves));
	memcpy(masks, &key_mask, sizeof(masks));
	halves[0] &= masks[0];
	memcpy(&key, halves, sizeof(key));
	return key;
}

static inline struct flow_key packet_plain_flow(const struct rte_mbuf *mbuf)
{
	return packet_flow_at(mbuf, sizeof(struct rte_ether_hdr));
}

/* The flow of an IPv4 packet. */
static inline struct flow_key packet_flow_ipv4(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const rte_be16_t *ports = packet_ports(mbuf, packet);

	if (likely(ports && packet->l4 == packet->l3 + sizeof(*ip)))
		return packet_flow_at(mbuf, packet->l3);
	return (struct flow_key){
		.source = ip->src_addr,
		.destination = ip->dst_addr,
		.source_port = ports ? ports[0] : 0,
		.destination_port = ports ? ports[1] : 0,
		.protocol = ip->next_proto_id,
	};
}

/* Whether the headers, also those of IPv6, are parsed and of a flow. */
static inline bool packet_has_flow(const struct packet *packet)
{
	return likely(packet->type == PACKET_IPV4) || packet->type == PACKET_IPV6;
}

/* The flow of an IP packet. */
static inline struct flow_key packet_flow(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (unlikely(packet->type == PACKET_IPV6))
		return packet_flow_ipv6(mbuf, packet);
	return packet_flow_ipv4(mbuf, packet);
}

/* The flow of IPv4 in the opposite direction. */
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

/* RFC 1624, equation 3: a checksum after one of the covered 16-bit words changed. */
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

/* Copy bytes of a packet that may be in several segments; they must be there. */
static inline void packet_copy(const struct rte_mbuf *mbuf, uint32_t at, uint32_t n, void *to)
{
	const void *from = rte_pktmbuf_read(mbuf, at, n, to);

	if (from != to)
		memcpy(to, from, n);
}
