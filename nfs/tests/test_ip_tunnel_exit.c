#include "tests/hostile.h"
#include "tests/tunnel_rig.h"

/* A packet in the tunnel, with padding behind it. */
static struct rte_mbuf *in_tunnel(struct rig *rig, const struct packet_spec *inner, uint16_t behind)
{
	uint8_t bytes[200];
	struct rte_mbuf *packet = packet_from_spec(rig, inner);
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes)) - 14;
	const struct packet_spec outer = {.source = TUNNEL_REMOTE,
					  .destination = TUNNEL_LOCAL,
					  .protocol = IPPROTO_IPIP,
					  .payload = bytes + 14,
					  .payload_length = length + behind,
					  .from = NF_OUTSIDE};

	memset(bytes + 14 + length, 0xaa, behind);
	rte_pktmbuf_free(packet);
	return packet_from_spec(rig, &outer);
}

/* ECN marks are copied, unless the sender does not support ECN (RFC 6040, figure 4). */
RIG_TEST(ecn_marks_are_copied)
{
	static const struct {
		uint8_t inner, outer, expected; /* 0xff: freed */
	} cases[] = {
		{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 3, 0xff}, {2, 0, 2}, {2, 1, 1},
		{2, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1},    {1, 2, 1}, {1, 3, 3},
		{3, 0, 3}, {3, 1, 3}, {3, 2, 3}, {3, 3, 3},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *packet = in_tunnel(rig, &from_inside, 0);
		struct rte_ipv4_hdr *outer = ipv4_of(packet);

		outer[0].type_of_service = cases[i].outer;
		outer[1].type_of_service = 0x40 | cases[i].inner;
		header_checksum_set(&outer[0]);
		header_checksum_set(&outer[1]);
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, packet, 1);
		if (cases[i].expected == 0xff) {
			assert_int_equal(rig_count(rig, "congested"), 1);
			continue;
		}
		assert_true(checksums_right(rig_sent(rig)));
		assert_int_equal(ipv4_of(rig_sent(rig))->type_of_service, 0x40 | cases[i].expected);
	}
}

/* A decapsulated packet with an expired time to live is freed (RFC 2003, section 3.1). */
RIG_TEST(expired_inner_packets_are_freed)
{
	struct rte_mbuf *packet = in_tunnel(rig, &from_inside, 0);
	struct rte_ipv4_hdr *inner = ipv4_of(packet) + 1;

	inner->time_to_live = 0;
	header_checksum_set(inner);
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_frees(rig, packet, 1);
	assert_int_equal(rig_count(rig, "expired"), 1);
}

/* Padding of a frame is neither encapsulated nor decapsulated. */
RIG_TEST(padding_is_removed)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &from_inside);

	memset(rte_pktmbuf_append(packet, 1000), 0xaa, 1000);
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet, 1);
	assert_int_equal(rte_pktmbuf_pkt_len(rig_sent(rig)), 14 + 20 + 36);
	rig_offer(rig, in_tunnel(rig, &from_inside, 30), 1);
	assert_int_equal(rte_pktmbuf_pkt_len(rig_sent(rig)), 14 + 36);
}

/* Padding does not complete a truncated inner packet. */
RIG_TEST(padding_does_not_complete_a_packet)
{
	struct rte_mbuf *packet = in_tunnel(rig, &from_inside, 0);
	struct rte_ipv4_hdr *outer = ipv4_of(packet);

	outer->total_length = RTE_BE16(20 + 28);
	header_checksum_set(outer);
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_frees(rig, packet, 1);
	assert_int_equal(rig_count(rig, "malformed"), 1);
}

/* From outside, only packets of the tunnel's other end are accepted. */
RIG_TEST(foreign_packets_are_freed)
{
	struct packet_spec packet_spec = {.source = TUNNEL_REMOTE,
					  .destination = TUNNEL_LOCAL,
					  .protocol = IPPROTO_IPIP,
					  .payload_length = 40,
					  .from = NF_OUTSIDE};

	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1); /* zeros are no valid packet */
	assert_int_equal(rig_count(rig, "malformed"), 1);
	packet_spec.source++;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	packet_spec.source--;
	packet_spec.destination++;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	packet_spec.destination--;
	packet_spec.protocol = IPPROTO_UDP;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "foreign"), 3);
}
