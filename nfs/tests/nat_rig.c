#include "tests/nat_rig.h"

#include "core/ipv4.h"

struct ends ends_of(struct rte_mbuf *mbuf)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, 14);
	const rte_be16_t *ports = (const rte_be16_t *)(ip + 1);
	const bool icmp = ip->next_proto_id == IPPROTO_ICMP;

	return (struct ends){
		.source = rte_be_to_cpu_32(ip->src_addr),
		.destination = rte_be_to_cpu_32(ip->dst_addr),
		.source_port = rte_be_to_cpu_16(ports[icmp ? 2 : 0]),
		.destination_port = rte_be_to_cpu_16(ports[icmp ? 2 : 1]),
	};
}

struct rte_mbuf *copy_sent(struct rig *rig)
{
	uint8_t bytes[200];
	const uint16_t length = packet_bytes(rig_sent(rig), bytes, sizeof(bytes));

	return packet_of(rig, bytes, length);
}

struct ends offered(struct rig *rig, const struct packet_spec *packet_spec, uint64_t now_us)
{
	rig_offer(rig, packet_from_spec(rig, packet_spec), now_us);
	assert_true(checksums_right(rig_sent(rig)));
	return ends_of(rig_sent(rig));
}

struct packet_spec reply_of(const struct packet_spec *packet_spec, struct ends left)
{
	struct packet_spec back = *packet_spec;

	back.source = left.destination;
	back.destination = left.source;
	back.source_port = left.destination_port;
	back.destination_port = left.source_port;
	back.from = NF_OUTSIDE;
	return back;
}

void check_crossed(struct rte_mbuf *mbuf)
{
	const struct packet packet = packet_parse(mbuf);
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, &packet);

	assert_int_equal(packet.type, PACKET_IPV4);
	if (side_of(mbuf) == NF_OUTSIDE)
		assert_int_equal(rte_be_to_cpu_32(ip->src_addr), outside);
	assert_int_not_equal(rte_be_to_cpu_32(ip->dst_addr), outside);
	if (mbuf->hash.usr)
		assert_true(ipv4_checksum_is_right(ip));
}
