#include "tests/offloading.h"

#include "core/rules.h"

/* A flow raises one alert per class, for any number of matches. */
static void one_alert_per_flow_and_class(void **state)
{
	struct rig *rig = *state;
	const char *ssh = witness_of("ssh"), *vnc = witness_of("vnc"), *sip = witness_of("sdp");

	rig_make(rig, "NIDS", NULL, 0);
	rig_offer(rig, packet_with(rig, 1, ssh), 1);
	rig_offer(rig, packet_with(rig, 1, ssh), 2);
	rig_offer(rig, packet_with(rig, 1, vnc), 3);
	assert_int_equal(rig_count(rig, "alerts_remote"), 1);
	rig_offer(rig, packet_with(rig, 1, sip), 4);
	rig_offer(rig, packet_with(rig, 2, ssh), 5);
	assert_int_equal(rig_count(rig, "alerts_remote"), 2);
	assert_int_equal(rig_count(rig, "alerts_media"), 1);
	assert_int_equal(rig_count(rig, "alerts"), 3);
	assert_int_equal(rig_count(rig, "matches"), 5);
	assert_int_equal(rig_count(rig, "dropped"), 0);
}

/* Matches within one burst belong to the same flow. */
static void one_alert_within_a_burst(void **state)
{
	struct rig *rig = *state;
	const char *ssh = witness_of("ssh");
	struct rte_mbuf *burst[] = {packet_with(rig, 1, ssh), packet_with(rig, 1, ssh),
				    packet_with(rig, 2, ssh)};

	rig_make(rig, "NIDS", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_int_equal(rig_count(rig, "alerts"), 2);
}

/* A removed flow raises its alerts again. */
static void removed_flows_raise_alerts_again(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"flows", 64}, {"timeout_s", 10}};
	const char *ssh = witness_of("ssh");

	rig_make(rig, "NIDS", settings, 2);
	rig_offer(rig, packet_with(rig, 1, ssh), SECOND);
	for (uint64_t s = 2; s < 40; s++)
		rig_offer(rig, packet_with(rig, 2, "nothing"), s * SECOND);
	rig_offer(rig, packet_with(rig, 1, ssh), 40 * SECOND);
	assert_int_equal(rig_count(rig, "alerts_remote"), 2);
}

/* Packets of the dropped class are freed, others pass; both raise alerts. */
static void only_the_configured_class_is_dropped(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"dropped_class", 1 + RULE_REMOTE}};

	rig_make(rig, "NIDS", settings, 1);
	rig_offer(rig, packet_with(rig, 1, witness_of("ssh")), 1);
	assert_int_equal(rig->out.n, 0);
	rig_offer(rig, packet_with(rig, 1, witness_of("tls")), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_with(rig, 1, "nothing"), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "dropped"), 1);
	assert_int_equal(rig_count(rig, "alerts"), 2);
}

/* A match of one class hides no other: the packet raises an alert of each, and is dropped by any. */
static void no_class_hides_another(void **state)
{
	struct rig *rig = *state;
	char text[256];

	snprintf(text, sizeof(text), "%s %s", witness_of("http-request"), witness_of("magnet"));
	for (int class = RULE_PEER_TO_PEER; class <= RULE_NETWORK; class++) {
		const struct nf_setting settings[] = {{"dropped_class", 1 + class}};
		const bool matched = class == RULE_PEER_TO_PEER || class == RULE_WEB;

		rig_make(rig, "NIDS", settings, 1);
		rig_offer(rig, packet_with(rig, 1, text), 1);
		assert_int_equal(rig->out.n, matched ? 0 : 1);
		assert_int_equal(rig_count(rig, "dropped"), matched);
		assert_int_equal(rig_count(rig, "alerts_peer_to_peer"), 1);
		assert_int_equal(rig_count(rig, "alerts_web"), 1);
		assert_int_equal(rig_count(rig, "alerts"), 2);
	}
}

/* Packets leave once each and in order, for any number of queues and window. */
static void packets_keep_their_order(void **state)
{
	check_order_kept(*state, "NIDS");
}

/* Packets that cannot be scanned completely pass and are counted. */
static void unscannable_packets_pass(void **state)
{
	check_segments(*state, "NIDS", true);
}

/* No packet makes it crash or leak, and malformed ones are freed. */
static void survives_any_packet(void **state)
{
	check_survives_any_packet(*state, "NIDS");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(one_alert_per_flow_and_class),     BOTH(one_alert_within_a_burst),
		BOTH(removed_flows_raise_alerts_again), BOTH(only_the_configured_class_is_dropped),
		BOTH(no_class_hides_another),           BOTH(packets_keep_their_order),
		BOTH(unscannable_packets_pass),         BOTH(survives_any_packet),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
