#include "tests/nat_rig.h"

#include "core/fragment.h"
#include "core/ipv4.h"
#include "core/random.h"

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

struct rte_mbuf *long_packet(struct rig *rig, const struct packet_spec *like, uint16_t length,
			     uint64_t *random)
{
	struct packet_spec spec = *like;
	uint8_t payload[LONG_PACKET];
	struct rte_mbuf *packet;

	for (uint16_t i = 0; i < length; i++)
		payload[i] = (uint8_t)random_next(random);
	spec.payload = payload;
	spec.payload_length = length;
	packet = packet_from_spec(rig, &spec);
	if (like->protocol == IPPROTO_ICMP && like->from == NF_OUTSIDE) {
		struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ipv4_of(packet) + 1);

		icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
		icmp->icmp_cksum = 0;
		icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + length);
	}
	return packet;
}

struct rte_mbuf *copy_of(struct rig *rig, struct rte_mbuf *packet)
{
	uint8_t bytes[LONG_PACKET + 100];
	struct rte_mbuf *copy = packet_of(rig, bytes, packet_bytes(packet, bytes, sizeof(bytes)));

	metadata_inherit(copy, packet);
	return copy;
}

uint16_t fragments_of(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu,
		      struct rte_mbuf **fragments)
{
	struct rte_mbuf *all[FRAGMENTS_MOST], *copy = copy_of(rig, packet);
	const struct packet parsed = packet_parse(copy);
	const int n = ipv4_fragment(copy, &parsed, mtu, rig->pool, all);

	assert_in_range(n, 2, NF_BURST);
	memcpy(fragments, all, n * sizeof(*fragments));
	return (uint16_t)n;
}
