/* Metadata of packets: sides, gates, and headers that are parsed once. */
#include "tests/support.h"

/* A packet leaves to the side opposite to the one it came from, unless it is sent back. */
RIG_TEST(gates_are_sides_as_seen_from_the_packet)
{
	for (int from = NF_INSIDE; from <= NF_OUTSIDE; from++) {
		struct rte_mbuf *packet = packet_from_spec(rig, &(struct packet_spec){.from = from});

		assert_int_equal(side_of(packet), !from);
		packet_send_back(packet);
		assert_int_equal(side_of(packet), from);
		for (int to = NF_INSIDE; to <= NF_OUTSIDE; to++) {
			packet_send_to(packet, to);
			assert_int_equal(side_of(packet), to);
		}
		rte_pktmbuf_free(packet);
	}
}

/* What is made from a packet came from where it came from, and has headers of its own. */
RIG_TEST(what_is_made_from_a_packet_inherits)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &(struct packet_spec){.from = NF_OUTSIDE});
	struct rte_mbuf *made =
		packet_from_spec(rig, &(struct packet_spec){.protocol = IPPROTO_TCP});

	metadata_of(packet)->number = 7;
	assert_int_equal(packet_headers(packet).protocol, IPPROTO_UDP);
	metadata_inherit(made, packet);
	assert_int_equal(packet_from(made), NF_OUTSIDE);
	assert_int_equal(metadata_of(made)->number, 7);
	assert_int_equal(packet_headers(made).protocol, IPPROTO_TCP);
	rte_pktmbuf_free(packet);
	rte_pktmbuf_free(made);
}

/* Headers are parsed again when data moved, its length changed, or a function says so. */
RIG_TEST(headers_are_parsed_again_after_a_change)
{
	struct rte_mbuf *packet =
		packet_from_spec(rig, &(struct packet_spec){.payload_length = 40, .vlan = 9});

	assert_int_equal(packet_headers(packet).l3, 18);
	assert_return_code(rte_pktmbuf_trim(packet, 1), 0);
	assert_int_equal(packet_headers(packet).type, PACKET_MALFORMED);
	assert_non_null(rte_pktmbuf_append(packet, 1));
	assert_int_equal(packet_headers(packet).type, PACKET_IPV4);
	rte_pktmbuf_mtod(packet, struct rte_ether_hdr *)->ether_type = 0;
	assert_int_equal(packet_headers(packet).type, PACKET_IPV4);
	packet_changed(packet);
	assert_int_equal(packet_headers(packet).type, PACKET_OTHER);
	rte_pktmbuf_free(packet);
}
