#include "tests/offloading.h"

#include "core/rules.h"
#include "tests/ipv6.h"

/* A packet that matches any rule is dropped. */
BOTH_TEST(matching_packets_are_dropped)
{
	unsigned int n;
	const struct rule *all = rules(&n);

	rig_make(rig, "PacketFilter", NULL, 0);
	for (unsigned int i = 0; i < n; i++) {
		rig_frees(rig, packet_with(rig, 1, all[i].witness), 1);
	}
	assert_counts(rig, {"dropped", n}, {"matches", n});
}

/* Packets without a match pass in order, also between dropped ones. */
BOTH_TEST(other_packets_pass_in_order)
{
	const char *ssh = witness_of("ssh");
	struct rte_mbuf *burst[] = {packet_with(rig, 1, ssh), packet_with(rig, 2, "a"),
				    packet_with(rig, 3, ""), packet_with(rig, 4, ssh),
				    packet_with(rig, 5, "b")};
	struct rte_mbuf *passing[] = {burst[1], burst[2], burst[4]};

	rig_make(rig, "PacketFilter", NULL, 0);
	rig_offer_burst(rig, burst, 5, 1);
	assert_int_equal(rig->out.n, 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(rig->out.packets[i], passing[i]);
	assert_int_equal(rig_count(rig, "dropped"), 2);
}

/* Payloads of IPv6 are scanned behind extension headers; frames that cannot be read are dropped. */
BOTH_TEST(nothing_passes_unread)
{
	const uint8_t options[8] = {IPPROTO_TCP}, later[8] = {IPPROTO_TCP, 0, 0, 8};
	const char *ssh = witness_of("ssh");
	struct ipv6_spec spec = {.protocol = IPPROTO_TCP, .payload = ssh,
				 .payload_length = (uint16_t)strlen(ssh), .first = 60,
				 .extensions = options, .extension_bytes = 8};
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	rig_make(rig, "PacketFilter", NULL, 0);
	rig_frees(rig, ipv6_packet(rig, &spec), 1);
	spec.first = 44;
	spec.extensions = later;
	rig_frees(rig, ipv6_packet(rig, &spec), 1);
	rig_frees(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
	spec.first = 60;
	spec.extensions = options;
	spec.payload = "nothing";
	spec.payload_length = 7;
	rig_offer(rig, ipv6_packet(rig, &spec), 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"dropped", 2}, {"unknown", 1}, {"fragments", 1}, {"scanned", 2});
}

SCANNING_TESTS("PacketFilter")

/* Packets that cannot be scanned completely are dropped and counted. */
BOTH_TEST(unscannable_packets_are_dropped)
{
	check_segments(rig, "PacketFilter", false);
}
