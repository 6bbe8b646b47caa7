#include "tests/hostile.h"
#include "tests/udp.h"

static void make(struct rig *rig, double vlan, double priority)
{
	RIG_MAKE(rig, "Tunnel", {"vlan", vlan}, {"priority", priority});
}

/* The tag follows the addresses; all other bytes are the same, from either side. */
RIG_TEST(a_tag_is_put_behind_the_addresses)
{
	make(rig, 0x123, 5);
	for (int from = NF_INSIDE; from <= NF_OUTSIDE; from++) {
		struct packet_spec packet_spec = udp;
		struct rte_mbuf *packet;
		uint8_t expected[128], bytes[128];
		uint16_t length;

		packet_spec.from = from;
		packet = packet_from_spec(rig, &packet_spec);
		length = packet_bytes(packet, expected, sizeof(expected) - 4);
		memmove(expected + 16, expected + 12, length - 12);
		memcpy(expected + 12, (uint8_t[]){0x81, 0x00, 0xa1, 0x23}, 4);
		rig_offer(rig, packet, 1);
		assert_int_equal(packet_bytes(rig_sent(rig), bytes, sizeof(bytes)), length + 4);
		assert_memory_equal(bytes, expected, length + 4);
		assert_int_equal(side_of(rig_sent(rig)), !from);
		assert_int_equal(packet_headers(rig_sent(rig)).l3, 18);
	}
	assert_int_equal(rig_count(rig, "tagged"), 2);
}

/* A second tag becomes the outer one; a third is refused. */
RIG_TEST(a_packet_has_two_tags_at_most)
{
	struct packet_spec tagged = udp;
	struct rte_mbuf *packet;
	const uint8_t *bytes;

	tagged.vlan = 7;
	make(rig, 8, 0);
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	packet = rig_sent(rig);
	bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
	assert_memory_equal(bytes + 12, "\x81\x00\x00\x08\x81\x00\x00\x07\x08\x00", 10);
	assert_int_equal(packet_headers(packet).l3, 22);
	rte_mbuf_refcnt_update(packet, 1);
	rig_frees(rig, packet, 1);
	assert_int_equal(rig_count(rig, "full"), 1);
}

/* Without room before the packet it is freed. */
RIG_TEST(a_tag_needs_room)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);

	make(rig, 1, 0);
	memmove((char *)packet->buf_addr + 2, rte_pktmbuf_mtod(packet, char *), packet->data_len);
	packet->data_off = 2;
	rig_frees(rig, packet, 1);
	assert_int_equal(rig_count(rig, "no_room"), 1);
}

/* All but what is shorter than an Ethernet header is tagged, whatever it is. */
RIG_TEST(only_short_packets_are_malformed)
{
	make(rig, 1, 0);
	offer_malformed(rig);
	assert_counts(rig, {"malformed", 14}, {"tagged", 47});
}

static void is_tagged(struct rte_mbuf *sent)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(sent, const uint8_t *);

	assert_true(rte_pktmbuf_data_len(sent) >= 18);
	assert_memory_equal(bytes + 12, "\x81\x00\x00\x01", 4);
}

/* Hostile packets are tagged or freed. */
RIG_TEST(hostile_packets_are_tagged)
{
	make(rig, 1, 0);
	offer_hostile(rig, NULL, 0, is_tagged);
	assert_true(rig_count(rig, "tagged") > 4000);
	assert_true(rig_count(rig, "malformed") > 0);
}
