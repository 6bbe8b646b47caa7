#include "functions/flow_offload/offload.h"
#include "functions/flow_offload/software.h"
#include "tests/hostile.h"

#define SECOND 1000000ull

enum {
	SYN = RTE_TCP_SYN_FLAG,
	ACK = RTE_TCP_ACK_FLAG,
	FIN = RTE_TCP_FIN_FLAG,
	RST = RTE_TCP_RST_FLAG,
	PSH = RTE_TCP_PSH_FLAG,
};

static const struct made tcp = {.source = RTE_IPV4(10, 0, 0, 9),
				.destination = RTE_IPV4(10, 0, 0, 2),
				.source_port = 1000,
				.destination_port = 80,
				.protocol = IPPROTO_TCP,
				.port = NF_INSIDE};

static struct made answer(const struct made *made)
{
	struct made back = *made;

	RTE_SWAP(back.source, back.destination);
	RTE_SWAP(back.source_port, back.destination_port);
	back.port = !made->port;
	return back;
}

/* Offer a packet of the connection, from who began it or from the other; whether it passed. */
static bool passes(struct rig *rig, const struct made *made, bool reply, uint8_t flags,
		   uint64_t now_us)
{
	struct made packet = reply ? answer(made) : *made;

	packet.tcp_flags = flags;
	rig_offer(rig, packet_made(rig, &packet), now_us);
	return rig->out.n == 1;
}

/* The state of the only connection; there must be one. */
static const char *state_now(struct rig *rig)
{
	static const char *states[] = {"syn_sent", "syn_received", "established",
				       "fin_wait", "last_ack",     "time_wait",
				       "closed",   "udp_new",      "udp_replied"};
	const char *now = NULL;

	for (size_t i = 0; i < RTE_DIM(states); i++) {
		const uint64_t there = rig_count(rig, states[i]);

		assert_in_range(there, 0, 1);
		if (there == 1) {
			assert_null(now);
			now = states[i];
		}
	}
	return now ? now : "none";
}

/* What a packet does: who sends it, its flags, and the state afterwards; NULL if it is invalid. */
struct step {
	bool reply;
	uint8_t flags;
	const char *state;
};

#define MOST_STEPS 10

static const struct step walks[][MOST_STEPS] = {
	/* opens, talks, closes from the side that began */
	{{0, SYN, "syn_sent"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {1, ACK | PSH, "established"},
	 {0, FIN | ACK, "fin_wait"},
	 {1, ACK, "fin_wait"},
	 {1, FIN | ACK, "last_ack"},
	 {0, ACK, "time_wait"},
	 {1, ACK, "time_wait"}},
	/* everything is sent twice */
	{{0, SYN, "syn_sent"},
	 {0, SYN, "syn_sent"},
	 {1, SYN | ACK, "syn_received"},
	 {0, SYN, "syn_received"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {1, SYN | ACK, "established"},
	 {0, ACK, "established"}},
	/* both ends begin at once (RFC 9293, figure 8) */
	{{0, SYN, "syn_sent"},
	 {1, SYN, "syn_received"},
	 {0, SYN | ACK, "syn_received"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"}},
	/* the same end closes twice, then the other */
	{{0, SYN, "syn_sent"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {1, FIN | ACK, "fin_wait"},
	 {1, FIN | ACK, "fin_wait"},
	 {0, ACK | PSH, "fin_wait"},
	 {0, FIN | ACK, "last_ack"},
	 {0, FIN | ACK, "last_ack"},
	 {1, ACK, "time_wait"}},
	/* refused, and tried again with the same ports */
	{{0, SYN, "syn_sent"},
	 {1, RST | ACK, "closed"},
	 {0, SYN, "syn_sent"},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {1, RST, "closed"},
	 {0, ACK, "closed"}},
	/* begun again from the other end */
	{{0, SYN, "syn_sent"},
	 {0, RST, "closed"},
	 {1, SYN, "syn_sent"},
	 {0, SYN | ACK, "syn_received"},
	 {0, ACK, "syn_received"},
	 {1, ACK, "established"}},
	/* an answer, data, an end without a beginning */
	{{0, SYN | ACK, NULL}, {0, ACK, NULL}, {0, FIN | ACK, NULL}, {0, RST, NULL}},
	/* what does not fit the state */
	{{0, SYN, "syn_sent"},
	 {0, ACK, NULL},
	 {1, ACK, NULL},
	 {0, SYN | ACK, NULL},
	 {1, SYN | ACK, "syn_received"},
	 {0, ACK, "established"},
	 {0, SYN, NULL},
	 {1, SYN, NULL},
	 {0, SYN | ACK, NULL}},
	/* flags that nobody sends */
	{{0, 0, NULL},
	 {0, SYN | FIN, NULL},
	 {0, SYN | RST, NULL},
	 {0, FIN, NULL},
	 {0, FIN | PSH | RTE_TCP_URG_FLAG, NULL},
	 {0, SYN, "syn_sent"},
	 {1, SYN | FIN | ACK, NULL}},
};

/* Connections go through their states by the flags of both ends; what is invalid changes none. */
static void states_of_tcp(void **state)
{
	struct rig *rig = *state;

	for (size_t walk = 0; walk < 2 * RTE_DIM(walks); walk++) {
		const struct step *step = walks[walk / 2];
		const struct made made = walk % 2 ? answer(&tcp) : tcp;
		const char *now = "none";
		uint64_t invalid = 0, tracked = 0;

		rig_make(rig, "FlowTracker", NULL, 0);
		for (int i = 0; i < MOST_STEPS && (step[i].flags || step[i].state || i == 0); i++) {
			assert_int_equal(passes(rig, &made, step[i].reply, step[i].flags, 1),
					 step[i].state != NULL);
			now = step[i].state ? step[i].state : now;
			assert_string_equal(state_now(rig), now);
			invalid += step[i].state == NULL;
			tracked += step[i].state != NULL;
		}
		assert_int_equal(rig_count(rig, "invalid"), invalid);
		assert_int_equal(rig_count(rig, "tracked"), tracked);
	}
}

/* Both ends may have one address. */
static void ends_at_one_address(void **state)
{
	struct rig *rig = *state;
	struct made made = tcp;

	made.destination = made.source;
	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &made, false, SYN, 1));
	assert_true(passes(rig, &made, true, SYN | ACK, 1));
	assert_true(passes(rig, &made, false, ACK, 1));
	assert_string_equal(state_now(rig), "established");
}

/* A UDP flow is new until it is answered, and stays answered. */
static void states_of_udp(void **state)
{
	struct rig *rig = *state;
	struct made udp = tcp;

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

/* A handshake within one burst is one connection. */
static void a_handshake_in_a_burst(void **state)
{
	struct rig *rig = *state;
	struct made packets[] = {tcp, answer(&tcp), tcp};
	struct rte_mbuf *burst[3];

	packets[0].tcp_flags = SYN;
	packets[1].tcp_flags = SYN | ACK;
	packets[2].tcp_flags = ACK;
	for (int i = 0; i < 3; i++)
		burst[i] = packet_made(rig, &packets[i]);
	rig_make(rig, "FlowTracker", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_int_equal(rig->out.n, 3);
	assert_string_equal(state_now(rig), "established");
	assert_int_equal(rig_count(rig, "started"), 1);
}

/* Invalid packets pass if that is asked for, and are counted all the same. */
static void invalid_may_pass(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"pass_invalid", 1}};

	rig_make(rig, "FlowTracker", settings, 1);
	assert_true(passes(rig, &tcp, false, ACK, 1));
	assert_int_equal(rig_count(rig, "invalid"), 1);
	assert_int_equal(rig_count(rig, "started"), 0);
}

/* Invalid packets leave nothing in the table. */
static void invalid_takes_no_place(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"connections", 8}};

	rig_make(rig, "FlowTracker", settings, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		struct made made = tcp;

		made.source += i;
		assert_false(passes(rig, &made, false, ACK, 1));
	}
	assert_true(passes(rig, &tcp, false, SYN, 1));
	assert_int_equal(rig_count(rig, "full"), 0);
}

/* Let time pass, during which nothing but age happens; whether the connection is forgotten. */
static bool forgotten_after(struct rig *rig, uint64_t from_us, double s)
{
	for (uint64_t now = from_us; now < from_us + (uint64_t)(s * 1e6); now += SECOND / 4)
		rig_offer_burst(rig, NULL, 0, now);
	return rig_count(rig, "aged") == 1;
}

/* Each state has its timeout. */
static void timeouts(void **state)
{
	static const struct nf_setting settings[] = {
		{"opening_s", 3}, {"established_s", 50}, {"closing_s", 10},   {"over_s", 5},
		{"udp_new_s", 4}, {"udp_s", 8},          {"connections", 64},
	};
	static const struct {
		uint8_t protocol;
		struct step steps[7];
		double lives_s;
	} cases[] = {
		{IPPROTO_TCP, {{0, SYN, ""}}, 3},
		{IPPROTO_TCP, {{0, SYN, ""}, {1, SYN | ACK, ""}}, 3},
		{IPPROTO_TCP, {{0, SYN, ""}, {1, SYN | ACK, ""}, {0, ACK, ""}}, 50},
		{IPPROTO_TCP,
		 {{0, SYN, ""}, {1, SYN | ACK, ""}, {0, ACK, ""}, {0, FIN | ACK, ""}},
		 10},
		{IPPROTO_TCP, {{0, SYN, ""}, {1, RST, ""}}, 5},
		{IPPROTO_UDP, {{0, 0, ""}}, 4},
		{IPPROTO_UDP, {{0, 0, ""}, {1, 0, ""}}, 8},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct made made = tcp;

		made.protocol = cases[i].protocol;
		rig_make(rig, "FlowTracker", settings, RTE_DIM(settings));
		for (int j = 0; cases[i].steps[j].state; j++)
			assert_true(passes(rig, &made, cases[i].steps[j].reply,
					   cases[i].steps[j].flags, SECOND));
		assert_false(forgotten_after(rig, SECOND, cases[i].lives_s));
		assert_true(forgotten_after(rig, SECOND + (uint64_t)(cases[i].lives_s * 1e6), 4));
		assert_string_equal(state_now(rig), "none");
	}
}

/* A full table lets packets of further connections pass, and counts them. */
static void a_full_table(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"connections", 8}};

	rig_make(rig, "FlowTracker", settings, 1);
	for (uint32_t i = 0; i < 200; i++) {
		struct made made = tcp;

		made.source += i;
		assert_true(passes(rig, &made, false, SYN, 1));
	}
	assert_true(rig_count(rig, "full") > 100);
	assert_int_equal(rig_count(rig, "full") + rig_count(rig, "syn_sent"), 200);
}

/* ICMP, other protocols, later fragments and IPv6 pass untracked. */
static void other_packets(void **state)
{
	struct rig *rig = *state;
	struct made icmp = tcp, tunnel = tcp, fragment = tcp, tagged = tcp;
	struct rte_mbuf *six = packet_made(rig, &tcp);

	icmp.protocol = IPPROTO_ICMP;
	tunnel.protocol = 47;
	fragment.fragment = 10;
	tagged.vlan = 9;
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_make(rig, "FlowTracker", NULL, 0);
	assert_true(passes(rig, &icmp, false, 0, 1));
	assert_true(passes(rig, &tunnel, false, 0, 1));
	assert_true(passes(rig, &fragment, false, 0, 1));
	assert_int_equal(rig_count(rig, "untracked"), 3);
	rig_offer(rig, six, 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
	assert_true(passes(rig, &tagged, false, SYN, 1));
	assert_int_equal(rig_count(rig, "syn_sent"), 1);
}

/* A card that takes every connection, and says what it was told. */
static struct {
	bool works, active;
	unsigned int forwarded;
} card;

static void *card_create(uint32_t connections, int socket)
{
	return card.works ? software_create(connections, socket) : NULL;
}

static bool card_forward(void *state, uint32_t place, uint16_t port)
{
	const struct flow_key key = software_key(state, place);

	assert_int_equal(rte_be_to_cpu_32(key.source),
			 port == NF_INSIDE ? tcp.source : tcp.destination);
	card.forwarded++;
	return true;
}

static bool card_active(void *state, uint32_t place)
{
	(void)state;
	(void)place;
	return card.active;
}

static void card_withdraw(void *state, uint32_t place)
{
	const struct flow_key key = software_key(state, place);

	assert_int_not_equal(key.source, 0);
	card.forwarded--;
}

static struct flow_offload_backend card_backend = {
	.name = "card",
	.help = "a card in a test",
	.preference = 100,
	.create = card_create,
	.places = software_places,
	.lookup = software_lookup,
	.insert = software_insert,
	.remove = software_remove,
	.destroy = software_destroy,
	.forward = card_forward,
	.withdraw = card_withdraw,
	.active = card_active,
};

FLOW_OFFLOAD_REGISTER(card_backend)

static void open_with_card(struct rig *rig, uint64_t now_us)
{
	const struct nf_setting settings[] = {{"connections", 64}, {"established_s", 10}};

	card.works = true;
	rig_make(rig, "FlowTracker", settings, 2);
	card.works = false;
	passes(rig, &tcp, false, SYN, now_us);
	passes(rig, &tcp, true, SYN | ACK, now_us);
	assert_int_equal(card.forwarded, 0);
	passes(rig, &tcp, false, ACK, now_us);
	passes(rig, &tcp, true, ACK, now_us);
	assert_int_equal(card.forwarded, 1);
	assert_int_equal(rig_count(rig, "forwarded"), 1);
}

/* What a card forwards is remembered as long as it does, and then forgotten by both. */
static void a_card_forwards(void **state)
{
	struct rig *rig = *state;

	open_with_card(rig, SECOND);
	card.active = true;
	assert_false(forgotten_after(rig, SECOND, 100));
	card.active = false;
	assert_true(forgotten_after(rig, 101 * SECOND, 30));
	assert_int_equal(card.forwarded, 0);
	assert_int_equal(rig_count(rig, "forwarded"), 0);
}

/* What closes is the cores' again, and what is opened again, the card's. */
static void a_card_gives_back(void **state)
{
	static const uint8_t ends[] = {FIN | ACK, RST};
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(ends); i++) {
		open_with_card(rig, SECOND);
		passes(rig, &tcp, true, ends[i], SECOND);
		assert_int_equal(card.forwarded, 0);
		assert_int_equal(rig_count(rig, "forwarded"), 0);
	}
	passes(rig, &tcp, false, SYN, SECOND);
	passes(rig, &tcp, true, SYN | ACK, SECOND);
	passes(rig, &tcp, false, ACK, SECOND);
	assert_int_equal(card.forwarded, 1);
}

/* Nothing malformed passes, and hostile packets do no harm; states still add up. */
static void hostile_packets(void **state)
{
	const uint32_t addresses[] = {tcp.source, tcp.destination};
	static const char *states[] = {"syn_sent", "syn_received", "established",
				       "fin_wait", "last_ack",     "time_wait",
				       "closed",   "udp_new",      "udp_replied"};
	struct rig *rig = *state;
	uint64_t there = 0;

	rig_make(rig, "FlowTracker", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "tracked"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), NULL);
	for (size_t i = 0; i < RTE_DIM(states); i++)
		there += rig_count(rig, states[i]);
	assert_int_equal(there, rig_count(rig, "started") - rig_count(rig, "aged"));
	assert_true(rig_count(rig, "tracked") > 500);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(states_of_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(states_of_udp, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_at_one_address, setup, teardown),
		cmocka_unit_test_setup_teardown(a_handshake_in_a_burst, setup, teardown),
		cmocka_unit_test_setup_teardown(invalid_may_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(invalid_takes_no_place, setup, teardown),
		cmocka_unit_test_setup_teardown(timeouts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_table, setup, teardown),
		cmocka_unit_test_setup_teardown(other_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_card_forwards, setup, teardown),
		cmocka_unit_test_setup_teardown(a_card_gives_back, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_packets, setup, teardown),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
