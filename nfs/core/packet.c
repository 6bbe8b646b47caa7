#include "core/packet.h"

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

static bool has_known_l4(uint8_t protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP || protocol == IPPROTO_ICMP;
}

static struct packet parse_ipv4(const struct rte_mbuf *mbuf, uint16_t l3)
{
	const uint16_t here = rte_pktmbuf_data_len(mbuf);
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	struct packet packet = {.type = PACKET_IPV4, .l3 = l3};
	uint16_t header, total, room, l4;

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
	if (packet.non_initial_fragment || !has_known_l4(packet.protocol))
		return packet;
	packet.l4 = l3 + header;
	room = RTE_MIN((uint16_t)(here - packet.l4), (uint16_t)(total - header));
	l4 = l4_header(mbuf, &packet, room);
	if (l4 == 0) {
		packet.type = PACKET_MALFORMED;
		packet.l4 = 0;
		return packet;
	}
	packet.payload = packet.l4 + l4;
	packet.payload_length = total - header - l4;
	return packet;
}

struct packet packet_parse_any(const struct rte_mbuf *mbuf)
{
	struct packet packet = {.type = PACKET_OTHER};
	rte_be16_t ether_type = 0;
	uint16_t offset = past_ethernet(mbuf, &ether_type);

	if (offset == 0)
		return malformed;
	packet.l3 = offset;
	if (ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return parse_ipv4(mbuf, offset);
	if (ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		packet.type = PACKET_IPV6;
	return packet;
}
