#include "tests/flow_tracker_rig.h"

/* A packet's sender and flags, and the state after it; NULL if it is invalid. */
struct step {
	bool reply;
	uint8_t flags;
	const char *state;
};

#define MOST_STEPS 10

/* One end opens a connection to the other. */
#define OPENED                                                                                     \
	{0, SYN, "syn_sent"}, {1, SYN | ACK, "syn_received"}, {0, ACK, "established"}

static const struct step scenarios[][MOST_STEPS] = {
	/* opens, sends data, closes from the opener's side */
	{OPENED,
	 {1, ACK | PSH, "established"},
	 {0, FIN | ACK, "fin_wait"},
	 {1, ACK, "fin_wait"},
	 {1, FIN | ACK, "last_ack"},
	 {0, ACK, "time_wait"},
	 {1, ACK, "time_wait"}},
	/* with every packet retransmitted */
	{{0, SYN, "syn_sent"},
	 {0, SYN, "syn_sent"},
	 {1, SYN | ACK, "syn_received"},
	 {0, SYN, "syn_received"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {1, SYN | ACK, "established"},
	 {0, ACK, "established"}},
	/* simultaneous open (RFC 9293, figure 8) */
	{{0, SYN, "syn_sent"},
	 {1, SYN, "syn_received"},
	 {0, SYN | ACK, "syn_received"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"}},
	/* one end closes twice, then the other */
	{OPENED,
	 {1, FIN | ACK, "fin_wait"},
	 {1, FIN | ACK, "fin_wait"},
	 {0, ACK | PSH, "fin_wait"},
	 {0, FIN | ACK, "last_ack"},
	 {0, FIN | ACK, "last_ack"},
	 {1, ACK, "time_wait"}},
	/* refused, then opened again with the same ports */
	{{0, SYN, "syn_sent"},
	 {1, RST | ACK, "closed"},
	 OPENED,
	 {1, RST, "closed"},
	 {0, ACK, "closed"}},
	/* opened again from the other end */
	{{0, SYN, "syn_sent"},
	 {0, RST, "closed"},
	 {1, SYN, "syn_sent"},
	 {0, SYN | ACK, "syn_received"},
	 {0, ACK, "syn_received"},
	 {1, ACK, "established"}},
	/* SYN-ACK, data and FIN without a connection */
	{{0, SYN | ACK, NULL}, {0, ACK, NULL}, {0, FIN | ACK, NULL}, {0, RST, NULL}},
	/* packets that do not fit the state */
	{{0, SYN, "syn_sent"},
	 {0, ACK, NULL},
	 {0, SYN | ACK, NULL},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {0, SYN | ACK, NULL}},
	/* one end lost the connection and opens it again (RFC 9293, figure 10) */
	{OPENED,
	 {0, SYN, "established"},
	 {1, ACK, "established"},
	 {0, RST, "closed"},
	 {0, SYN, "syn_sent"}},
	/* the same where the connection is not known here: the other end acknowledges what it awaits */
	{{0, SYN, "syn_sent"}, {1, ACK, "syn_sent"}, {0, RST, "closed"}, OPENED},
	/* the same after one end, then both, have closed */
	{OPENED,
	 {1, FIN | ACK, "fin_wait"},
	 {0, SYN, "fin_wait"},
	 {0, FIN | ACK, "last_ack"},
	 {0, SYN, "last_ack"},
	 {1, RST, "closed"}},
	/* retransmissions before the FIN is acknowledged close nothing */
	{OPENED,
	 {0, FIN | ACK, "fin_wait"},
	 {1, FIN | ACK, "last_ack"},
	 {1, ACK | PSH, "last_ack"},
	 {0, ACK, "time_wait"}},
	/* invalid flags */
	{{0, 0, NULL},
	 {0, SYN | FIN, NULL},
	 {0, SYN | RST, NULL},
	 {0, FIN, NULL},
	 {0, FIN | PSH | RTE_TCP_URG_FLAG, NULL},
	 {0, SYN, "syn_sent"},
	 {1, SYN | FIN | ACK, NULL}},
};

/* Connections change state by the flags of both ends; invalid packets change nothing. */
RIG_TEST(tcp_states_follow_flags)
{
	for (size_t scenario = 0; scenario < 2 * RTE_DIM(scenarios); scenario++) {
		const struct step *step = scenarios[scenario / 2];
		const struct packet_spec packet_spec = scenario % 2 ? reply_to(&tcp) : tcp;
		const char *now = "none";
		uint64_t invalid = 0, tracked = 0;

		rig_make(rig, "FlowTracker", NULL, 0);
		for (int i = 0; i < MOST_STEPS && (step[i].flags || step[i].state || i == 0); i++) {
			assert_int_equal(passes(rig, &packet_spec, step[i].reply, step[i].flags, 1),
					 step[i].state != NULL);
			now = step[i].state ? step[i].state : now;
			assert_string_equal(state_now(rig), now);
			invalid += step[i].state == NULL;
			tracked += step[i].state != NULL;
		}
		assert_counts(rig, {"invalid", invalid}, {"tracked", tracked});
	}
}

/* A UDP flow is new until the first reply, and replied from then on. */
RIG_TEST(udp_states_follow_replies)
{
	struct packet_spec udp = tcp;

	udp.protocol = IPPROTO_UDP;
	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &udp, false, 0, 1));
	assert_true(passes(rig, &udp, false, 0, 1));
	assert_string_equal(state_now(rig), "udp_new");
	assert_true(passes(rig, &udp, true, 0, 1));
	assert_string_equal(state_now(rig), "udp_replied");
	assert_true(passes(rig, &udp, false, 0, 1));
	assert_string_equal(state_now(rig), "udp_replied");
	assert_int_equal(rig_count(rig, "started"), 1);
}

/* Each state has its timeout. */
RIG_TEST(each_state_has_its_timeout)
{
	static const struct {
		uint8_t protocol;
		struct step steps[7];
		double lives_s;
	} cases[] = {
		{IPPROTO_TCP, {{0, SYN, ""}}, 3},
		{IPPROTO_TCP, {{0, SYN, ""}, {1, SYN | ACK, ""}}, 3},
		{IPPROTO_TCP, {OPENED}, 50},
		{IPPROTO_TCP, {OPENED, {0, FIN | ACK, ""}}, 10},
		{IPPROTO_TCP, {OPENED, {0, FIN | ACK, ""}, {1, FIN | ACK, ""}}, 10},
		{IPPROTO_TCP, {OPENED, {0, FIN | ACK, ""}, {1, FIN | ACK, ""}, {0, ACK, ""}}, 5},
		{IPPROTO_TCP, {{0, SYN, ""}, {1, RST | ACK, ""}}, 5},
		{IPPROTO_UDP, {{0, 0, ""}}, 4},
		{IPPROTO_UDP, {{0, 0, ""}, {1, 0, ""}}, 8},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct packet_spec packet_spec = tcp;

		packet_spec.protocol = cases[i].protocol;
		RIG_MAKE(rig, "FlowTracker", {"opening_s", 3}, {"established_s", 50},
			 {"closing_s", 10}, {"over_s", 5}, {"udp_new_s", 4}, {"udp_s", 8},
			 {"connections", 64});
		for (int j = 0; cases[i].steps[j].state; j++)
			assert_true(passes(rig, &packet_spec, cases[i].steps[j].reply,
					   cases[i].steps[j].flags, SECOND));
		assert_false(forgotten_after(rig, SECOND, cases[i].lives_s));
		assert_true(forgotten_after(rig, SECOND + (uint64_t)(cases[i].lives_s * 1e6), 4));
		assert_string_equal(state_now(rig), "none");
	}
}

/* Only a reset with a number that the other end may await closes; one outside of windows is freed. */
RIG_TEST(resets_need_the_number_that_is_due)
{
	static const struct {
		uint32_t behind; /* the next number of its end */
		bool passes;
		const char *state;
	} cases[] = {
		{(uint32_t)-601, false, "established"}, /* bytes that are acknowledged */
		{1, true, "established"},
		{1 << 20, true, "established"},
		{1u << 31, false, "established"},
		{(uint32_t)-600, true, "closed"}, /* what the other end acknowledged last */
		{(uint32_t)-100, true, "closed"}, /* bytes on their way */
		{0, true, "closed"},
	};

	for (size_t i = 0; i < 2 * RTE_DIM(cases); i++) {
		const bool reply = i % 2;
		struct packet_spec packet = reply ? reply_to(&tcp) : tcp;

		rig_make(rig, "FlowTracker", NULL, 0);
		passes(rig, &tcp, false, SYN, 1);
		passes(rig, &tcp, true, SYN | ACK, 1);
		passes(rig, &tcp, false, ACK, 1);
		packet.tcp_flags = ACK;
		packet.payload_length = 600;
		passes_at(rig, &packet, reply, next_number(reply), 1);
		packet.tcp_flags = RST;
		packet.payload_length = 0;
		assert_int_equal(passes_at(rig, &packet, reply,
					   next_number(reply) + cases[i / 2].behind, 1),
				 cases[i / 2].passes);
		assert_string_equal(state_now(rig), cases[i / 2].state);
	}
}

/* A segment of the connection with these numbers, and a window of 65535; a SYN with 4 bytes of options. */
static void offer_with_options(struct rig *rig, bool reply, uint8_t flags, uint32_t sequence,
			       uint32_t acknowledged, uint16_t length, const uint8_t *options)
{
	struct packet_spec spec = reply ? reply_to(&tcp) : tcp;
	struct rte_mbuf *packet;
	struct rte_tcp_hdr *header;

	spec.tcp_flags = flags;
	spec.payload = options;
	spec.payload_length = options ? 4 : length;
	packet = packet_from_spec(rig, &spec);
	header = rte_pktmbuf_mtod_offset(packet, struct rte_tcp_hdr *,
					 sizeof(struct rte_ether_hdr) + 20);
	header->sent_seq = rte_cpu_to_be_32(sequence);
	header->recv_ack = rte_cpu_to_be_32(acknowledged);
	header->rx_win = 0xffff;
	if (options)
		header->data_off = 6 << 4;
	rig_offer(rig, packet, 1);
}

#define OFFER(...) offer_with_options(rig, __VA_ARGS__, NULL)

/*
 * What answers a SYN with another number than its own, the client resets: with that number, which
 * closes nothing, then or later; and the server's numbers are those of the answer that is right.
 */
RIG_TEST(a_wrong_answer_to_a_syn_closes_nothing)
{
	static const uint8_t wrong[] = {ACK, SYN | ACK};

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		rig_make(rig, "FlowTracker", NULL, 0);
		OFFER(false, SYN, 1000, 0, 0);
		OFFER(true, wrong[i], 5, 1u << 31, 0);
		OFFER(false, RST, 1u << 31, 0, 0);
		assert_int_equal(rig->out.n, 1);
		assert_int_equal(rig_count(rig, "closed"), 0);
		OFFER(true, SYN | ACK, 7000000, 1001, 0);
		OFFER(false, ACK, 1001, 7000001, 0);
		assert_string_equal(state_now(rig), "established");
		OFFER(false, RST, 1u << 31, 0, 0);
		OFFER(true, RST, 5 + (wrong[i] == (SYN | ACK)), 0, 0);
		assert_string_equal(state_now(rig), "established");
		OFFER(i == 0, RST, i == 0 ? 7000001 : 1001, 0, 0);
		assert_string_equal(state_now(rig), "closed");
	}
}

/* Segments count only within the window: who does not see the connection cannot widen what is due. */
RIG_TEST(blind_segments_make_no_number_due)
{
	rig_make(rig, "FlowTracker", NULL, 0);
	OFFER(false, SYN, 1000, 0, 0);
	OFFER(true, SYN | ACK, 7000000, 1001, 0);
	OFFER(false, ACK, 1001, 7000001, 0);
	for (uint32_t number = 1001 + 65536; number < 1u << 30; number += 1u << 28) {
		OFFER(false, ACK, number, 7000001, 0);
		OFFER(false, ACK, number, 7000001, 1);
		OFFER(false, RST, number, 0, 0);
		assert_string_equal(state_now(rig), "established");
	}
	OFFER(false, ACK, 1001 + 64936, 7000001, 600);
	OFFER(false, RST, 1001 + 65535, 0, 0);
	assert_string_equal(state_now(rig), "established");
	OFFER(false, ACK, 1001 + 64935, 7000001, 600);
	OFFER(false, RST, 1001 + 65535, 0, 0);
	assert_string_equal(state_now(rig), "closed");
}

/* A window has the scale of its end's SYN if both have one, but that of a SYN has none. */
RIG_TEST(windows_have_the_scale_of_both_syns)
{
	static const struct {
		uint8_t client[4], server[4]; /* options */
		uint32_t window;              /* of the server */
	} cases[] = {
		{{1, 3, 3, 2}, {3, 3, 3, 0}, 65535 << 3}, {{3, 3, 0, 0}, {1, 3, 3, 200}, 65535 << 14},
		{{1, 1, 1, 1}, {1, 3, 3, 3}, 65535},      {{1, 3, 3, 3}, {0, 3, 3, 3}, 65535},
		{{1, 3, 3, 3}, {8, 0, 3, 3}, 65535},      {{1, 3, 3, 3}, {1, 1, 3, 3}, 65535},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		const uint32_t most = 1 + cases[i].window;

		rig_make(rig, "FlowTracker", NULL, 0);
		offer_with_options(rig, false, SYN, 0, 0, 0, cases[i].client);
		offer_with_options(rig, true, SYN | ACK, 0, 1, 0, cases[i].server);
		OFFER(false, ACK, 65536, 1, 1);
		OFFER(false, RST, 65537, 0, 0);
		assert_int_equal(rig_count(rig, "closed"), 0);
		OFFER(true, ACK, 1, 1, 0);
		OFFER(false, ACK, most, 1, 1);
		OFFER(false, RST, most, 0, 0);
		assert_int_equal(rig_count(rig, "closed"), 0);
		OFFER(false, ACK, most - 1, 1, 1);
		OFFER(false, RST, most, 0, 0);
		assert_int_equal(rig_count(rig, "closed"), 1);
	}
}
