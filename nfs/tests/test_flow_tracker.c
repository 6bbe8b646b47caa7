#include "functions/flow_tracker/states.h"
#include "tests/flow_tracker_rig.h"
#include "tests/ipv6.h"

/* Both ends may have the same address. */
RIG_TEST(both_ends_may_share_an_address)
{
	struct packet_spec packet_spec = tcp;

	packet_spec.destination = packet_spec.source;
	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &packet_spec, false, SYN, 1));
	assert_true(passes(rig, &packet_spec, true, SYN | ACK, 1));
	assert_true(passes(rig, &packet_spec, false, ACK, 1));
	assert_string_equal(state_now(rig), "established");
}

/* Both directions of a connection over IPv6 are one, whichever address is the lower. */
RIG_TEST(connections_of_ipv6_are_tracked)
{
	static const uint8_t flags[] = {SYN, SYN | ACK, ACK};

	for (uint32_t client = 1; client < 4; client += 2) {
		rig_make(rig, "FlowTracker", NULL, 0);
		for (int i = 0; i < 3; i++) {
			const bool back = i == 1;
			const struct ipv6_spec spec = {.source = back ? 2 : client,
						       .destination = back ? client : 2,
						       .source_port = back ? 80 : 1000,
						       .destination_port = back ? 1000 : 80,
						       .protocol = IPPROTO_TCP,
						       .tcp_flags = flags[i]};

			rig_offer(rig, ipv6_packet(rig, &spec), 1);
			assert_int_equal(rig->out.n, 1);
		}
		assert_string_equal(state_now(rig), "established");
		assert_counts(rig, {"started", 1}, {"tracked", 3}, {"invalid", 0});
	}
}

/* A handshake within one burst is one connection. */
RIG_TEST(handshake_within_a_burst)
{
	struct packet_spec packets[] = {tcp, reply_to(&tcp), tcp};
	struct rte_mbuf *burst[3];

	packets[0].tcp_flags = SYN;
	packets[1].tcp_flags = SYN | ACK;
	packets[2].tcp_flags = ACK;
	for (int i = 0; i < 3; i++)
		burst[i] = packet_from_spec(rig, &packets[i]);
	rig_make(rig, "FlowTracker", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_int_equal(rig->out.n, 3);
	assert_string_equal(state_now(rig), "established");
	assert_int_equal(rig_count(rig, "started"), 1);
}

/* Invalid packets pass if configured, and are still counted. */
RIG_TEST(invalid_packets_pass_if_configured)
{
	RIG_MAKE(rig, "FlowTracker", {"pass_invalid", 1});
	assert_true(passes(rig, &tcp, false, ACK, 1));
	assert_counts(rig, {"invalid", 1}, {"started", 0});
}

/* Invalid packets do not use an entry of the table. */
RIG_TEST(invalid_packets_use_no_entry)
{
	RIG_MAKE(rig, "FlowTracker", {"connections", 8});
	for (uint32_t i = 0; i < 1000; i++) {
		struct packet_spec packet_spec = tcp;

		packet_spec.source += i;
		assert_false(passes(rig, &packet_spec, false, ACK, 1));
	}
	assert_true(passes(rig, &tcp, false, SYN, 1));
	assert_int_equal(rig_count(rig, "full"), 0);
}

/* A full table frees packets that open a connection, and counts them; others are invalid. */
RIG_TEST(full_table_frees_new_connections)
{
	uint64_t full, tracked;

	RIG_MAKE(rig, "FlowTracker", {"connections", 8});
	for (uint32_t i = 0; i < 200; i++) {
		struct packet_spec packet_spec = tcp;
		bool passed;

		packet_spec.source += i;
		tracked = rig_count(rig, "tracked");
		passed = passes(rig, &packet_spec, false, SYN, 1);
		assert_int_equal(rig_count(rig, "tracked"), tracked + passed);
	}
	full = rig_count(rig, "full");
	assert_true(full > 100);
	assert_int_equal(full + rig_count(rig, "syn_sent"), 200);
	for (uint32_t i = 0; i < 200; i++) {
		struct packet_spec packet_spec = tcp;

		packet_spec.source += 1000 + i;
		assert_false(passes(rig, &packet_spec, false, ACK, 1));
		packet_spec.protocol = IPPROTO_UDP;
		assert_false(passes(rig, &packet_spec, false, 0, 1));
	}
	assert_counts(rig, {"invalid", 200}, {"full", full + 200});
}

/* A connection on the ports of one that was over counts as started. */
RIG_TEST(reopened_connections_count_as_started)
{
	rig_make(rig, "FlowTracker", NULL, 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_true(passes(rig, &tcp, false, SYN, 1));
		assert_true(passes(rig, &tcp, false, SYN, 1));
		assert_true(passes(rig, &tcp, true, RST | ACK, 1));
		assert_counts(rig, {"started", 1 + i}, {"restarted", i});
	}
}

/* A timeout holds however few packets there are: no packet came between, so no sweep either. */
RIG_TEST(a_packet_after_the_timeout_finds_no_connection)
{
	struct packet_spec udp = tcp;

	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &tcp, false, SYN, SECOND));
	assert_true(passes(rig, &tcp, true, SYN | ACK, 120 * SECOND));
	assert_false(passes(rig, &tcp, false, ACK, 241 * SECOND));
	assert_string_equal(state_now(rig), "none");
	assert_int_equal(rig_count(rig, "aged"), 1);
	assert_true(passes(rig, &tcp, false, SYN, 242 * SECOND));
	assert_int_equal(rig_count(rig, "started"), 2);
	udp.protocol = IPPROTO_UDP;
	assert_true(passes(rig, &udp, false, 0, 250 * SECOND));
	assert_true(passes(rig, &udp, true, 0, 280 * SECOND));
	assert_counts(rig, {"udp_new", 1}, {"udp_replied", 0});
}

/* ICMP, other protocols, non-initial fragments and IPv6 pass untracked. */
RIG_TEST(other_packets_pass_untracked)
{
	struct packet_spec icmp = tcp, tunnel = tcp, fragment = tcp, tagged = tcp;
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	icmp.protocol = IPPROTO_ICMP;
	tunnel.protocol = 47;
	fragment.fragment = 10;
	tagged.vlan = 9;
	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &icmp, false, 0, 1));
	assert_true(passes(rig, &tunnel, false, 0, 1));
	assert_true(passes(rig, &fragment, false, 0, 1));
	assert_int_equal(rig_count(rig, "untracked"), 3);
	rig_offer(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
	assert_true(passes(rig, &tagged, false, SYN, 1));
	assert_int_equal(rig_count(rig, "syn_sent"), 1);
}

/* No packet passes that is malformed, or TCP with invalid flags. */
static void fits(struct rte_mbuf *passed)
{
	const struct packet packet = packet_parse(passed);

	assert_int_not_equal(packet.type, PACKET_MALFORMED);
	if (packet.protocol == IPPROTO_TCP && packet.l4 != 0)
		assert_int_not_equal(tcp_kind(rte_pktmbuf_mtod_offset(
						      passed, const struct rte_tcp_hdr *, packet.l4)
						      ->tcp_flags),
				     TCP_INVALID_PACKET);
}

/* No malformed packet passes, and the counters of states add up after hostile packets. */
RIG_TEST(states_add_up_after_hostile_packets)
{
	const uint32_t addresses[] = {tcp.source, tcp.destination};
	uint64_t there = 0;

	rig_make(rig, "FlowTracker", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "tracked"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), fits);
	for (size_t i = 0; i < CONNECTION_STATE_NAMES; i++)
		there += rig_count(rig, connection_states[i]);
	assert_int_equal(there, rig_count(rig, "started") - rig_count(rig, "restarted") -
					rig_count(rig, "aged"));
	assert_true(rig_count(rig, "tracked") > 500);
}
