#include <stdlib.h>

#include "tests/hostile.h"
#include "tests/udp.h"

static void make(struct rig *rig, double vlan, double untagged)
{
	RIG_MAKE(rig, "Detunnel", {"vlan", vlan}, {"untagged", untagged});
}

static struct rte_mbuf *tagged(struct rig *rig, uint16_t vlan)
{
	struct packet_spec packet_spec = udp;

	packet_spec.vlan = vlan;
	return packet_from_spec(rig, &packet_spec);
}

/* Without its tag a packet has the bytes that it would have had without one. */
RIG_TEST(the_tag_is_taken_off)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);
	uint8_t expected[128], bytes[128];
	const uint16_t length = packet_bytes(packet, expected, sizeof(expected));

	rte_pktmbuf_free(packet);
	rig_make(rig, "Detunnel", NULL, 0);
	packet = tagged(rig, 0xe123); /* also with a priority */
	assert_int_equal(packet_headers(packet).l3, 18);
	rig_offer(rig, packet, 1);
	assert_int_equal(packet_bytes(rig_sent(rig), bytes, sizeof(bytes)), length);
	assert_memory_equal(bytes, expected, length);
	assert_int_equal(packet_headers(rig_sent(rig)).l3, 14);
	assert_int_equal(rig_count(rig, "detagged"), 1);
}

/* With a VLAN only its tags are taken off, whatever their priority; others are foreign. */
RIG_TEST(foreign_tags_are_freed)
{
	make(rig, 7, 1);
	rig_offer(rig, tagged(rig, 0x6007), 1);
	assert_int_equal(rig->out.n, 1);
	rig_frees(rig, tagged(rig, 8), 1);
	assert_counts(rig, {"detagged", 1}, {"foreign", 1});
}

/* Packets without a tag pass, or are freed on request. */
RIG_TEST(untagged_packets_pass_or_not)
{
	for (int pass = 0; pass < 2; pass++) {
		make(rig, 7, pass);
		rig_offer(rig, packet_from_spec(rig, &udp), 1);
		assert_int_equal(rig->out.n, pass);
		assert_int_equal(rig_count(rig, "untagged"), 1);
	}
}

/* Of two tags only the outer one is taken off, also one of 802.1ad. */
RIG_TEST(the_outer_tag_is_taken_off)
{
	struct rte_mbuf *packet = tagged(rig, 9);
	uint8_t *begin = (uint8_t *)rte_pktmbuf_prepend(packet, 4);

	if (!begin) /* the compiler does not know that cmocka's assertions end the test */
		abort();
	memmove(begin, begin + 4, 12);
	memcpy(begin + 12, (uint8_t[]){0x88, 0xa8, 0x00, 0x05}, 4);
	make(rig, 5, 1);
	rig_offer(rig, packet, 1);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 12),
			    "\x81\x00\x00\x09\x08\x00", 6);
}

/* A packet that ends before its tag does is malformed. */
RIG_TEST(truncated_tags_are_malformed)
{
	rig_make(rig, "Detunnel", NULL, 0);
	for (uint16_t length = 0; length < 18; length++) {
		struct rte_mbuf *packet = tagged(rig, 5);

		rte_pktmbuf_trim(packet, rte_pktmbuf_data_len(packet) - length);
		rig_frees(rig, packet, 1);
	}
	assert_int_equal(rig_count(rig, "malformed"), 18);
	rig_offer(rig, in_two(rig, tagged(rig, 5), 17), 1);
	assert_int_equal(rig_count(rig, "malformed"), 19);
	rig_offer(rig, in_two(rig, tagged(rig, 5), 18), 1);
	assert_int_equal(rig->out.n, 1);
}

/* Hostile packets pass with a tag less, or are freed. */
RIG_TEST(hostile_packets_are_detagged)
{
	rig_make(rig, "Detunnel", NULL, 0);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "detagged") > 500);
	assert_true(rig_count(rig, "untagged") > 3000);
	assert_true(rig_count(rig, "malformed") > 0);
	make(rig, 5, 0);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "detagged") > 500);
	assert_true(rig_count(rig, "foreign") > 0);
}
