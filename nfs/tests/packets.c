#include "tests/packets.h"

#include <stdlib.h>

#include "tests/support.h"

struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(rig->pool);
	void *data;

	assert_non_null(packet);
	metadata_begin(packet, NF_INSIDE, 0);
	data = rte_pktmbuf_append(packet, length);
	assert_non_null(data);
	memcpy(data, bytes, length);
	return packet;
}

static void *appended(struct rte_mbuf *packet, uint16_t length)
{
	void *data = rte_pktmbuf_append(packet, length);

	if (!data) /* the compiler does not know that cmocka's assertions end the test */
		abort();
	memset(data, 0, length);
	return data;
}

static void add_ethernet(struct rte_mbuf *packet, const struct packet_spec *packet_spec)
{
	struct rte_ether_hdr *ethernet = appended(packet, sizeof(*ethernet));

	memset(&ethernet->dst_addr, 0x02, sizeof(ethernet->dst_addr));
	memset(&ethernet->src_addr, 0x06, sizeof(ethernet->src_addr));
	ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	if (packet_spec->vlan) {
		struct rte_vlan_hdr *tag = appended(packet, sizeof(*tag));

		ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(packet_spec->vlan);
		tag->eth_proto = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	}
}

static uint16_t l4_length(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_UDP:
		return sizeof(struct rte_udp_hdr);
	case IPPROTO_TCP:
		return sizeof(struct rte_tcp_hdr);
	case IPPROTO_ICMP:
		return sizeof(struct rte_icmp_hdr);
	default:
		return 0;
	}
}

static void fill_l4(const struct packet_spec *packet_spec, uint8_t protocol,
		    struct rte_ipv4_hdr *ip, void *l4, uint16_t length)
{
	struct rte_udp_hdr *udp = l4;
	struct rte_tcp_hdr *tcp = l4;
	struct rte_icmp_hdr *icmp = l4;

	if (protocol == IPPROTO_UDP) {
		udp->src_port = rte_cpu_to_be_16(packet_spec->source_port);
		udp->dst_port = rte_cpu_to_be_16(packet_spec->destination_port);
		udp->dgram_len = rte_cpu_to_be_16(length);
		udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, l4);
	} else if (protocol == IPPROTO_TCP) {
		tcp->src_port = rte_cpu_to_be_16(packet_spec->source_port);
		tcp->dst_port = rte_cpu_to_be_16(packet_spec->destination_port);
		tcp->data_off = (sizeof(*tcp) / 4) << 4;
		tcp->tcp_flags = packet_spec->tcp_flags;
		tcp->cksum = rte_ipv4_udptcp_cksum(ip, l4);
	} else if (protocol == IPPROTO_ICMP) {
		icmp->icmp_type = RTE_IP_ICMP_ECHO_REQUEST;
		icmp->icmp_ident = rte_cpu_to_be_16(packet_spec->source_port);
		icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, length);
	}
}

struct rte_mbuf *packet_from_spec(struct rig *rig, const struct packet_spec *packet_spec)
{
	const uint8_t protocol = packet_spec->protocol ? packet_spec->protocol : IPPROTO_UDP;
	const bool non_initial = (packet_spec->fragment & RTE_IPV4_HDR_OFFSET_MASK) != 0;
	const uint16_t header = non_initial ? 0 : l4_length(protocol);
	struct rte_mbuf *packet = rte_pktmbuf_alloc(rig->pool);
	struct rte_ipv4_hdr *ip;
	uint8_t *rest;

	assert_non_null(packet);
	metadata_begin(packet, packet_spec->from, 0);
	add_ethernet(packet, packet_spec);
	ip = appended(packet, sizeof(*ip));
	rest = appended(packet, header + packet_spec->payload_length);
	if (packet_spec->payload)
		memcpy(rest + header, packet_spec->payload, packet_spec->payload_length);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length =
			rte_cpu_to_be_16(sizeof(*ip) + header + packet_spec->payload_length),
		.packet_id = rte_cpu_to_be_16(packet_spec->id),
		.fragment_offset = rte_cpu_to_be_16(packet_spec->fragment),
		.time_to_live = packet_spec->ttl ? packet_spec->ttl : 64,
		.next_proto_id = protocol,
		.src_addr = rte_cpu_to_be_32(packet_spec->source),
		.dst_addr = rte_cpu_to_be_32(packet_spec->destination),
	};
	if (!non_initial)
		fill_l4(packet_spec, protocol, ip, rest, header + packet_spec->payload_length);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return packet;
}

void assert_header_checksum(struct rte_mbuf *packet)
{
	const struct packet parsed = packet_parse(packet);
	const struct rte_ipv4_hdr *ip;

	assert_true(parsed.type == PACKET_IPV4 || parsed.type == PACKET_MALFORMED);
	assert_int_not_equal(parsed.l3, 0);
	ip = packet_ipv4(packet, &parsed);
	assert_int_equal(rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)), 0xffff);
}

bool checksums_right(struct rte_mbuf *mbuf)
{
	const struct packet packet = packet_parse(mbuf);
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;

	if (packet.type != PACKET_IPV4)
		return false;
	ip = packet_ipv4(mbuf, &packet);
	if (rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)) != 0xffff)
		return false;
	if (packet.fragment || packet.l4 == 0)
		return true;
	udp = rte_pktmbuf_mtod_offset(mbuf, const struct rte_udp_hdr *, packet.l4);
	if (packet.protocol == IPPROTO_ICMP)
		return rte_raw_cksum(udp, rte_be_to_cpu_16(ip->total_length) -
						  rte_ipv4_hdr_len(ip)) == 0xffff;
	if (packet.protocol == IPPROTO_UDP && udp->dgram_cksum == 0)
		return true;
	return rte_ipv4_udptcp_cksum_verify(ip, udp) == 0;
}
