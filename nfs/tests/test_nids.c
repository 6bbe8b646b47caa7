#include "tests/offloading.h"

#include "core/rules.h"

/* A flow raises one alert per class, for any number of matches. */
BOTH_TEST(one_alert_per_flow_and_class)
{
	const char *ssh = witness_of("ssh"), *vnc = witness_of("vnc"), *sip = witness_of("sdp");

	rig_make(rig, "NIDS", NULL, 0);
	rig_offer(rig, packet_with(rig, 1, ssh), 1);
	rig_offer(rig, packet_with(rig, 1, ssh), 2);
	rig_offer(rig, packet_with(rig, 1, vnc), 3);
	assert_int_equal(rig_count(rig, "alerts_remote"), 1);
	rig_offer(rig, packet_with(rig, 1, sip), 4);
	rig_offer(rig, packet_with(rig, 2, ssh), 5);
	assert_counts(rig, {"alerts_remote", 2}, {"alerts_media", 1}, {"alerts", 3}, {"matches", 5},
		      {"dropped", 0});
}

/* Matches within one burst belong to the same flow. */
BOTH_TEST(one_alert_within_a_burst)
{
	const char *ssh = witness_of("ssh");
	struct rte_mbuf *burst[] = {packet_with(rig, 1, ssh), packet_with(rig, 1, ssh),
				    packet_with(rig, 2, ssh)};

	rig_make(rig, "NIDS", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_int_equal(rig_count(rig, "alerts"), 2);
}

/* A removed flow raises its alerts again. */
BOTH_TEST(removed_flows_raise_alerts_again)
{
	const char *ssh = witness_of("ssh");

	RIG_MAKE(rig, "NIDS", {"flows", 64}, {"timeout_s", 10});
	rig_offer(rig, packet_with(rig, 1, ssh), SECOND);
	for (uint64_t s = 2; s < 40; s++)
		rig_offer(rig, packet_with(rig, 2, "nothing"), s * SECOND);
	rig_offer(rig, packet_with(rig, 1, ssh), 40 * SECOND);
	assert_int_equal(rig_count(rig, "alerts_remote"), 2);
}

/* Packets of the dropped class are freed, others pass; both raise alerts. */
BOTH_TEST(only_the_configured_class_is_dropped)
{
	RIG_MAKE(rig, "NIDS", {"dropped_class", 1 + RULE_REMOTE});
	rig_frees(rig, packet_with(rig, 1, witness_of("ssh")), 1);
	rig_offer(rig, packet_with(rig, 1, witness_of("tls")), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_with(rig, 1, "nothing"), 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"dropped", 1}, {"alerts", 2});
}

/* Frames that are not understood pass, but not a NIDS that drops, unless it is so set. */
BOTH_TEST(a_nids_that_drops_lets_nothing_pass_unread)
{
	static const char *const words[] = {"", "pass", "drop"};
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	for (int class = 0; class < 2; class++)
		for (int word = 0; word < 3; word++) {
			const bool passes = word == 0 ? class == 0 : word == 1;

			RIG_MAKE(rig, "NIDS", {"dropped_class", class},
				 {"unknown", .text = words[word]});
			rig_offer(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
			assert_int_equal(rig->out.n, passes);
			assert_int_equal(rig_count(rig, passes ? "other" : "unknown"), 1);
		}
}

/* A match of one class hides no other: the packet raises an alert of each, and is dropped by any. */
BOTH_TEST(no_class_hides_another)
{
	char text[256];

	snprintf(text, sizeof(text), "%s %s", witness_of("http-request"), witness_of("magnet"));
	for (int class = RULE_PEER_TO_PEER; class <= RULE_NETWORK; class++) {
		const struct nf_setting settings[] = {{"dropped_class", 1 + class}};
		const bool matched = class == RULE_PEER_TO_PEER || class == RULE_WEB;

		rig_make(rig, "NIDS", settings, 1);
		rig_offer(rig, packet_with(rig, 1, text), 1);
		assert_int_equal(rig->out.n, matched ? 0 : 1);
		assert_counts(rig, {"dropped", matched}, {"alerts_peer_to_peer", 1},
			      {"alerts_web", 1}, {"alerts", 2});
	}
}

SCANNING_TESTS("NIDS")

/* Packets that cannot be scanned completely pass and are counted. */
BOTH_TEST(unscannable_packets_pass)
{
	check_segments(rig, "NIDS", true);
}
