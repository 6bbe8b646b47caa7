#include "tests/nat_rig.h"

/* Let `s` seconds pass without packets of the session. */
static uint64_t wait_for(struct rig *rig, uint64_t now_us, unsigned int s)
{
	for (unsigned int i = 0; i < s; i++)
		rig_offer_burst(rig, NULL, 0, now_us + (i + 1) * SECOND);
	return now_us + s * SECOND;
}

/* Whether packets from outside still pass. */
static bool passes_in(struct rig *rig, const struct packet_spec *back, uint64_t now_us)
{
	rig_offer(rig, packet_from_spec(rig, back), now_us);
	return rig->out.n == 1;
}

/* UDP sessions time out, and only outbound packets refresh them (RFC 4787, REQ-6). */
RIG_TEST(udp_times_out_unless_refreshed_from_inside)
{
	uint64_t now = SECOND;
	struct packet_spec back;

	rig_make(rig, "NAT", one_address, 2);
	back = reply_of(&udp, offered(rig, &udp, now));
	now = wait_for(rig, now, 200);
	offered(rig, &udp, now);
	now = wait_for(rig, now, 299);
	assert_true(passes_in(rig, &back, now));
	now = wait_for(rig, now, 40);
	assert_false(passes_in(rig, &back, now));
	assert_counts(rig, {"unmapped", 1}, {"aged", 1});
}

/*
 * A timeout holds however few packets there are: no packet came between, so no sweep either. A
 * stranger passes while any session of the inside endpoint lives.
 */
RIG_TEST(nobody_reaches_a_host_after_the_timeout)
{
	static const uint32_t elsewhere = RTE_IPV4(192, 0, 2, 1);
	struct packet_spec back, stranger, other = udp;

	rig_make(rig, "NAT", NULL, 0);
	back = reply_of(&udp, offered(rig, &udp, SECOND));
	stranger = back;
	stranger.source = elsewhere;
	other.destination = server + 1;
	offered(rig, &other, 200 * SECOND);
	assert_true(passes_in(rig, &stranger, 300 * SECOND));
	assert_true(passes_in(rig, &stranger, 499 * SECOND));
	assert_true(passes_in(rig, &back, 499 * SECOND));
	assert_int_equal(rig_count(rig, "aged"), 1);
	assert_false(passes_in(rig, &stranger, 500 * SECOND));
	assert_false(passes_in(rig, &back, 500 * SECOND));
	assert_counts(rig, {"unmapped", 2}, {"aged", 2});
	offered(rig, &udp, 501 * SECOND);
	offered(rig, &udp, 801 * SECOND);
	assert_counts(rig, {"started", 4}, {"aged", 3});
}

static void tcp_packet(struct rig *rig, struct packet_spec *packet_spec, uint8_t flags,
		       uint64_t now)
{
	packet_spec->tcp_flags = flags;
	offered(rig, packet_spec, now);
}

enum { SYN = RTE_TCP_SYN_FLAG, ACK = RTE_TCP_ACK_FLAG, FIN = RTE_TCP_FIN_FLAG };

/* Send a SYN through a new NAT; returns the reply. */
static struct packet_spec open_tcp(struct rig *rig, struct packet_spec *packet_spec, uint64_t now)
{
	*packet_spec = udp;
	packet_spec->protocol = IPPROTO_TCP;
	packet_spec->tcp_flags = SYN;
	rig_make(rig, "NAT", one_address, 2);
	return reply_of(packet_spec, offered(rig, packet_spec, now));
}

/* The rest of a handshake. */
static void reply_to_syn(struct rig *rig, struct packet_spec *packet_spec, struct packet_spec *back,
			 uint64_t now)
{
	tcp_packet(rig, back, SYN | ACK, now);
	tcp_packet(rig, packet_spec, ACK, now);
}

/*
 * TCP times out after 4 minutes while it opens or closes, else after 2 hours and 4 minutes (RFC
 * 5382).
 */
RIG_TEST(tcp_timeouts_depend_on_state)
{
	static const struct {
		uint8_t closing[3]; /* from inside, outside, inside */
		bool opened;
		unsigned int lives_s;
		bool opened_again; /* with the same ports */
	} cases[] = {
		{{0}, false, 240, false},
		{{0}, true, 7440, false},
		{{FIN | ACK, 0, 0}, true, 7440, false}, /* half closed */
		{{FIN | ACK, FIN | ACK, ACK}, true, 240, false},
		{{RTE_TCP_RST_FLAG, 0, 0}, true, 240, false},
		{{RTE_TCP_RST_FLAG, 0, 0}, true, 7440, true},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint64_t now = SECOND;
		struct packet_spec packet_spec, back = open_tcp(rig, &packet_spec, now);

		if (cases[i].opened)
			reply_to_syn(rig, &packet_spec, &back, now);
		for (int j = 0; j < 3; j++)
			if (cases[i].closing[j])
				tcp_packet(rig, j == 1 ? &back : &packet_spec, cases[i].closing[j],
					   now);
		if (cases[i].opened_again) {
			tcp_packet(rig, &packet_spec, SYN, now);
			reply_to_syn(rig, &packet_spec, &back, now);
		}
		now = wait_for(rig, now, cases[i].lives_s - 1);
		assert_int_equal(rig_count(rig, "aged"), 0);
		now = wait_for(rig, now, 40);
		assert_int_equal(rig_count(rig, "aged"), 1);
	}
}

/* A connection opened again with the same ports starts with a fresh state. */
RIG_TEST(reopened_tcp_has_a_fresh_state)
{
	uint64_t now = SECOND;
	struct packet_spec packet_spec, back = open_tcp(rig, &packet_spec, now);

	reply_to_syn(rig, &packet_spec, &back, now);
	tcp_packet(rig, &packet_spec, FIN | ACK, now);
	tcp_packet(rig, &packet_spec, SYN, now);
	reply_to_syn(rig, &packet_spec, &back, now);
	tcp_packet(rig, &back, FIN | ACK, now); /* one end only */
	wait_for(rig, now, 400);
	assert_int_equal(rig_count(rig, "aged"), 0);
}
