#include "core/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <rte_debug.h>

static const struct packet malformed = {.type = PACKET_MALFORMED};

/* Offset of the header behind Ethernet and VLAN tags; 0 if the packet is too short. */
static uint16_t past_ethernet(const struct rte_mbuf *mbuf, rte_be16_t *ether_type)
{
	const uint16_t length = rte_pktmbuf_data_len(mbuf);
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	uint16_t offset = sizeof(*ethernet);

	if (length < offset)
		return 0;
	*ether_type = ethernet->ether_type;
	for (int tags = 0; tags < PACKET_MOST_TAGS; tags++) {
		const struct rte_vlan_hdr *tag;

		if (*ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN) &&
		    *ether_type != RTE_BE16(RTE_ETHER_TYPE_QINQ))
			break;
		if (length < offset + sizeof(*tag))
			return 0;
		tag = rte_pktmbuf_mtod_offset(mbuf, const struct rte_vlan_hdr *, offset);
		*ether_type = tag->eth_proto;
		offset += sizeof(*tag);
	}
	return offset;
}

/* Length of a layer 4 header with `room` bytes present; 0 if it does not fit. */
static uint16_t l4_header(const struct rte_mbuf *mbuf, const struct packet *packet, uint16_t room)
{
	const struct rte_tcp_hdr *tcp;
	uint16_t length;

	switch (packet->protocol) {
	case IPPROTO_UDP:
		return room >= sizeof(struct rte_udp_hdr) ? sizeof(struct rte_udp_hdr) : 0;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return room >= sizeof(struct rte_icmp_hdr) ? sizeof(struct rte_icmp_hdr) : 0;
	case IPPROTO_TCP:
		if (room < sizeof(*tcp))
			return 0;
		tcp = rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
		length = (tcp->data_off >> 4) * 4;
		return length >= sizeof(*tcp) && length <= room ? length : 0;
	default:
		return 0;
	}
}

/* Find the layer 4 header in `room` bytes that are present, of `rest` by the header before it. */
static struct packet with_l4(const struct rte_mbuf *mbuf, struct packet packet, uint16_t l4,
			     uint32_t room, uint16_t rest)
{
	uint16_t header;

	packet.l4 = l4;
	header = l4_header(mbuf, &packet, (uint16_t)RTE_MIN(room, (uint32_t)rest));
	if (header == 0) {
		packet.type = PACKET_MALFORMED;
		packet.l4 = 0;
		return packet;
	}
	packet.payload = l4 + header;
	packet.payload_length = rest - header;
	return packet;
}

static struct packet parse_ipv4(const struct rte_mbuf *mbuf, uint16_t l3)
{
	const uint16_t here = rte_pktmbuf_data_len(mbuf);
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	struct packet packet = {.type = PACKET_IPV4, .l3 = l3};
	uint16_t header, total;

	if (here < l3 + sizeof(*ip) || (ip->version_ihl >> 4) != 4)
		return malformed;
	header = rte_ipv4_hdr_len(ip);
	total = rte_be_to_cpu_16(ip->total_length);
	if (header < sizeof(*ip) || here < l3 + header || total < header ||
	    rte_pktmbuf_pkt_len(mbuf) < (uint32_t)l3 + total)
		return malformed;
	packet.protocol = ip->next_proto_id;
	packet.fragment = (ip->fragment_offset &
			   RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG)) != 0;
	packet.non_initial_fragment =
		(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) != 0;
	if (packet.non_initial_fragment ||
	    (packet.protocol != IPPROTO_UDP && packet.protocol != IPPROTO_TCP &&
	     packet.protocol != IPPROTO_ICMP))
		return packet;
	return with_l4(mbuf, packet, l3 + header, here - l3 - header, total - header);
}

#define MOST_EXTENSIONS 16 /* extension headers; hosts take each of the six once or twice */

/* Those of RFC 7045 with a form that is known; mobility, HIP and shim6 have that of options. */
static bool is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_FRAGMENT || protocol == IPPROTO_AH ||
	       protocol == IPPROTO_DSTOPTS || protocol == 135 || protocol == 139 || protocol == 140;
}

/* Whether a fragment is one that hosts take: of a multiple of 8 bytes, and within 65,535 ones. */
static bool is_sound_fragment(uint16_t field, uint32_t bytes)
{
	if (field & RTE_IPV6_EHDR_MF_MASK && bytes % 8 != 0)
		return false;
	return (field & RTE_IPV6_EHDR_FO_MASK) + bytes <= UINT16_MAX;
}

/*
 * Read the extension header at `*at`, before `end`, and go behind it; `fragments` counts fragment
 * headers. False if it is malformed.
 */
static bool skip_extension(const struct rte_mbuf *mbuf, struct packet *packet, uint32_t *at,
			   uint32_t end, unsigned int *fragments)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, *at);
	uint32_t length = 8;
	uint16_t field;

	if (RTE_MIN((uint32_t)rte_pktmbuf_data_len(mbuf), end) < *at + 8)
		return false;
	if (packet->protocol == IPPROTO_FRAGMENT) {
		field = (uint16_t)(header[2] << 8 | header[3]);
		packet->fragment = (field & (RTE_IPV6_EHDR_FO_MASK | RTE_IPV6_EHDR_MF_MASK)) != 0;
		packet->non_initial_fragment = (field & RTE_IPV6_EHDR_FO_MASK) != 0;
		if ((*fragments)++ > 0 || !is_sound_fragment(field, end - *at - 8))
			return false;
	} else if (packet->protocol == IPPROTO_AH) {
		length = (header[1] + 2) * 4;
	} else {
		length = (header[1] + 1) * 8;
	}
	packet->protocol = header[0];
	*at += length;
	return *at <= end && *at <= rte_pktmbuf_data_len(mbuf);
}

struct packet packet_parse_ipv6(const struct rte_mbuf *mbuf, uint16_t l3)
{
	const uint32_t here = rte_pktmbuf_data_len(mbuf);
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv6_hdr *, l3);
	struct packet packet = {.type = PACKET_IPV6, .l3 = l3};
	uint32_t at = l3 + sizeof(*ip), end;
	unsigned int fragments = 0;

	if (here < at || rte_be_to_cpu_32(ip->vtc_flow) >> 28 != 6)
		return malformed;
	end = at + rte_be_to_cpu_16(ip->payload_len);
	if (rte_pktmbuf_pkt_len(mbuf) < end)
		return malformed;
	packet.protocol = ip->proto;
	for (int n = 0; is_extension(packet.protocol) && !packet.non_initial_fragment; n++)
		if (n == MOST_EXTENSIONS || (packet.protocol == IPPROTO_HOPOPTS && n > 0) ||
		    !skip_extension(mbuf, &packet, &at, end, &fragments))
			return malformed;
	if (packet.non_initial_fragment ||
	    (packet.protocol != IPPROTO_UDP && packet.protocol != IPPROTO_TCP &&
	     packet.protocol != IPPROTO_ICMPV6))
		return packet;
	packet = with_l4(mbuf, packet, (uint16_t)at, here - at, (uint16_t)(end - at));
	return packet.type == PACKET_MALFORMED ? malformed : packet;
}

struct packet packet_parse_any(const struct rte_mbuf *mbuf)
{
	struct packet packet = {.type = PACKET_OTHER};
	rte_be16_t ether_type = 0;
	uint16_t offset;

	if (likely(packet_is_plain_ipv6(mbuf)))
		return packet_plain_ipv6(mbuf);
	offset = past_ethernet(mbuf, &ether_type);

	if (offset == 0)
		return malformed;
	packet.l3 = offset;
	if (ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return parse_ipv4(mbuf, offset);
	if (ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		packet.type = PACKET_IPV6;
	if (ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		packet.type = PACKET_ARP;
	return packet;
}

uint64_t packet_flow_secrets[4];

void draw_secrets(uint64_t *secrets, size_t n)
{
	if (getrandom(secrets, n * sizeof(*secrets), 0) != (ssize_t)(n * sizeof(*secrets)))
		rte_panic("no random bytes: %s\n", strerror(errno));
}

void packet_flow_begin(void)
{
	if (packet_flow_secrets[0] == 0)
		draw_secrets(packet_flow_secrets, RTE_DIM(packet_flow_secrets));
}

uint32_t flow_hash_of(const void *key, uint32_t n, uint32_t initial)
{
	(void)n;
	(void)initial;
	return flow_hash(packet_flow_secrets, key);
}

struct flow_key packet_flow_ipv6(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ipv6_hdr *ip = packet_ipv6(mbuf, packet);
	const rte_be16_t *l4 = packet_ports(mbuf, packet);
	struct flow_key key;
	uint32_t ports = 0;

	if (l4)
		memcpy(&ports, l4, sizeof(ports));
	flow_between_ipv6(&key, ip->src_addr, ip->dst_addr, packet->protocol, ports);
	return key;
}

bool packet_connection_ipv6(struct rte_mbuf *mbuf, const struct packet *packet,
			    struct flow_key *key)
{
	const uint8_t *source = packet_ipv6(mbuf, packet)->src_addr, *destination = source + 16;
	const rte_be16_t *l4 = packet_ports(mbuf, packet);
	uint64_t ends[4];
	uint32_t ports = 0;
	bool reversed;

	memcpy(ends, source, sizeof(ends));
	if (l4)
		memcpy(&ports, l4, sizeof(ports));
	reversed = ends[0] != ends[2]   ? ends[0] > ends[2]
		   : ends[1] != ends[3] ? ends[1] > ends[3]
					: (uint16_t)ports > ports >> 16;
	flow_between_ipv6(key, reversed ? destination : source, reversed ? source : destination,
			  packet->protocol, reversed ? ports << 16 | ports >> 16 : ports);
	return reversed;
}
