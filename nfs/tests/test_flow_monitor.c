#include "tests/offloading.h"

/* Matches are counted per rule, packet and flow; every packet passes unchanged. */
BOTH_TEST(counts_matches)
{
	const char *ssh = witness_of("ssh"), *vnc = witness_of("vnc");
	char both[128];
	struct rte_mbuf *burst[5];

	snprintf(both, sizeof(both), "%s %s", ssh, vnc);
	burst[0] = packet_with(rig, 1, ssh);
	burst[1] = packet_with(rig, 1, "nothing");
	burst[2] = packet_with(rig, 2, both);
	burst[3] = packet_with(rig, 2, ssh);
	burst[4] = packet_with(rig, 3, "");
	rig_make(rig, "FlowMonitor", NULL, 0);
	rig_offer_burst(rig, burst, 5, 1);
	assert_int_equal(rig->out.n, 5);
	for (int i = 0; i < 5; i++)
		assert_true(checksums_right(rig->out.packets[i]));
	assert_counts(rig, {"packets", 5}, {"scanned", 4}, {"matches", 4}, {"started", 3},
		      {"matching_flows", 2});
}

/* A removed flow starts again without matches. */
BOTH_TEST(removed_flows_restart_without_matches)
{
	const char *ssh = witness_of("ssh");

	RIG_MAKE(rig, "FlowMonitor", {"flows", 64}, {"timeout_s", 10});
	rig_offer(rig, packet_with(rig, 1, ssh), SECOND);
	rig_offer(rig, packet_with(rig, 1, ssh), 2 * SECOND);
	assert_int_equal(rig_count(rig, "matching_flows"), 1);
	for (uint64_t s = 3; s < 40; s++)
		rig_offer(rig, packet_with(rig, 2, "nothing"), s * SECOND);
	assert_int_equal(rig_count(rig, "aged"), 1);
	rig_offer(rig, packet_with(rig, 1, ssh), 40 * SECOND);
	assert_counts(rig, {"matching_flows", 2}, {"matches", 3});
}

/* A pipeline returns with packets under way and sends them later; run to completion does not. */
BOTH_TEST(executes_as_configured)
{
	struct rte_mbuf *burst[NF_BURST];

	rig_make(rig, "FlowMonitor", NULL, 0);
	for (int i = 0; i < NF_BURST; i++)
		burst[i] = packet_with(rig, 1, "nothing of note");
	rig_offer_unflushed(rig, burst, NF_BURST);
	if (rig->execution == NF_PIPELINE)
		assert_in_range(rig->out.n, 0, NF_BURST - 1);
	else
		assert_int_equal(rig->out.n, NF_BURST);
	nf_flush(rig->nf, &rig->out);
	assert_int_equal(rig->out.n, NF_BURST);
}

SCANNING_TESTS("FlowMonitor")

/* Packets that cannot be scanned completely pass and are counted. */
BOTH_TEST(unscannable_packets_pass)
{
	check_segments(rig, "FlowMonitor", true);
}

/* Without an accelerator the function cannot be created. */
TEST(needs_an_accelerator)
{
	const struct nf_config config = {.name = "FlowMonitor"};

	assert_null(nf_create(&config, NULL, 0));
}
