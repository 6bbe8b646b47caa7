#include <stdlib.h>

#include "core/random.h"
#include "tests/hostile.h"

#define SECOND 1000000ull

static const uint32_t host = RTE_IPV4(10, 0, 0, 1);
static const uint32_t server = RTE_IPV4(198, 51, 100, 7);
static const uint32_t outside = RTE_IPV4(203, 0, 113, 0);

static const struct nf_setting one_address[] = {{"addresses", 1}, {"sessions", 1024}};

static const struct made udp = {.source = RTE_IPV4(10, 0, 0, 1),
				.destination = RTE_IPV4(198, 51, 100, 7),
				.source_port = 1001,
				.destination_port = 53,
				.payload = "question",
				.payload_length = 8,
				.port = NF_INSIDE};

struct ends {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

static struct rte_mbuf *sent(struct rig *rig)
{
	assert_int_equal(rig->out.n, 1);
	return rig->out.packets[0];
}

static struct ends ends_of(struct rte_mbuf *mbuf)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, 14);
	const rte_be16_t *ports = (const rte_be16_t *)(ip + 1);
	const bool icmp = ip->next_proto_id == IPPROTO_ICMP;

	return (struct ends){
		.source = rte_be_to_cpu_32(ip->src_addr),
		.destination = rte_be_to_cpu_32(ip->dst_addr),
		.source_port = rte_be_to_cpu_16(ports[icmp ? 2 : 0]),
		.destination_port = rte_be_to_cpu_16(ports[icmp ? 2 : 1]),
	};
}

/* What is sent for a packet; its checksums must be right. */
static struct ends offered(struct rig *rig, const struct made *made, uint64_t now_us)
{
	rig_offer(rig, packet_made(rig, made), now_us);
	assert_true(checksums_right(sent(rig)));
	return ends_of(sent(rig));
}

/* The answer to what left with these ends. */
static struct made answer(const struct made *made, struct ends left)
{
	struct made back = *made;

	back.source = left.destination;
	back.destination = left.source;
	back.source_port = left.destination_port;
	back.destination_port = left.source_port;
	back.port = NF_OUTSIDE;
	return back;
}

/* A packet leaves with an address and port outside, and its answer comes in to whom it is for. */
static void there_and_back(void **state)
{
	struct rig *rig = *state;
	struct made back;
	struct ends left, came;

	rig_make(rig, "NAT", one_address, 2);
	left = offered(rig, &udp, 1);
	assert_int_equal(left.source, outside);
	assert_in_range(left.source_port, 1024, 65535);
	assert_int_equal(left.destination, server);
	assert_int_equal(left.destination_port, 53);
	assert_int_equal(sent(rig)->port, NF_OUTSIDE);
	back = answer(&udp, left);
	came = offered(rig, &back, 2);
	assert_int_equal(came.source, server);
	assert_int_equal(came.destination, host);
	assert_int_equal(came.destination_port, 1001);
	assert_int_equal(sent(rig)->port, NF_INSIDE);
	assert_int_equal(rig_count(rig, "outward"), 1);
	assert_int_equal(rig_count(rig, "inward"), 1);
}

/*
 * Whatever UDP and TCP packets leave, undoing the ports and addresses by hand gives the very bytes
 * that came, checksums included.
 */
static void undone_it_is_the_same(void **state)
{
	struct rig *rig = *state;
	uint64_t random = 3;

	rig_make(rig, "NAT", NULL, 0);
	for (int i = 0; i < 5000; i++) {
		uint8_t before[200], after[200], payload[100];
		struct made made = {
			.source = host + random_below(&random, 1000),
			.destination = server + random_below(&random, 1000),
			.source_port = random_below(&random, 65536),
			.destination_port = random_below(&random, 65536),
			.protocol = random_below(&random, 2) ? IPPROTO_UDP : IPPROTO_TCP,
			.vlan = random_below(&random, 2) * 7,
			.payload = payload,
			.payload_length = random_below(&random, 100),
		};
		const uint16_t l3 = made.vlan ? 18 : 14;
		struct rte_mbuf *packet;
		uint16_t length;

		for (uint16_t at = 0; at < made.payload_length; at++)
			payload[at] = (uint8_t)random_next(&random);
		packet = packet_made(rig, &made);
		length = packet_bytes(packet, before, sizeof(before));
		rig_offer(rig, packet, 1);
		assert_true(checksums_right(sent(rig)));
		assert_int_equal(packet_bytes(sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, l3 + 10); /* up to the header checksum */
		memcpy(after + l3 + 10, before + l3 + 10, 6);
		memcpy(after + l3 + 20, before + l3 + 20, 2);
		if (made.protocol == IPPROTO_UDP)
			memcpy(after + l3 + 26, before + l3 + 26, 2);
		else
			memcpy(after + l3 + 36, before + l3 + 36, 2);
		assert_memory_equal(before, after, length);
	}
}

/* A UDP packet without a checksum has none afterwards (RFC 768). */
static void no_checksum_stays_none(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *packet = packet_made(rig, &udp);
	const struct rte_udp_hdr *left;

	rte_pktmbuf_mtod_offset(packet, struct rte_udp_hdr *, 34)->dgram_cksum = 0;
	rig_make(rig, "NAT", one_address, 2);
	rig_offer(rig, packet, 1);
	left = rte_pktmbuf_mtod_offset(sent(rig), const struct rte_udp_hdr *, 34);
	assert_int_equal(left->dgram_cksum, 0);
}

/*
 * A UDP checksum that comes out as 0 is sent as its other zero, for 0 would say that there is none:
 * of the 65,536 payloads of two bytes, one is such.
 */
static void checksum_is_never_none(void **state)
{
	struct rig *rig = *state;

	rig_make(rig, "NAT", one_address, 2);
	for (uint32_t i = 0; i < 2 * 65536; i++) {
		const uint16_t payload = (uint16_t)i;
		struct made made = udp;
		const struct rte_udp_hdr *left;

		made.payload = &payload;
		made.payload_length = sizeof(payload);
		made.vlan = i >> 16;
		rig_offer(rig, packet_made(rig, &made), 1);
		left = rte_pktmbuf_mtod_offset(sent(rig), const struct rte_udp_hdr *,
					       made.vlan ? 38 : 34);
		assert_int_not_equal(left->dgram_cksum, 0);
		assert_true(checksums_right(sent(rig)));
	}
}

/* One port outside serves an endpoint whoever it talks to, and whoever talks to it. */
static void mapping_does_not_depend_on_the_other_end(void **state)
{
	struct rig *rig = *state;
	struct made other = udp, back;
	struct ends first, second, came;

	other.destination = server + 1;
	other.destination_port = 54;
	rig_make(rig, "NAT", one_address, 2);
	first = offered(rig, &udp, 1);
	second = offered(rig, &other, 1);
	assert_int_equal(first.source_port, second.source_port);
	assert_int_equal(rig_count(rig, "started"), 2);
	back = answer(&udp, first);
	back.source = server + 9;
	came = offered(rig, &back, 2);
	assert_int_equal(came.destination, host);
}

/* All endpoints of a host have one address outside, and ports as odd or even as theirs. */
static void addresses_are_paired_and_parity_kept(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;
	uint32_t address;
	bool used[16] = {0};

	rig_make(rig, "NAT", NULL, 0);
	address = offered(rig, &made, 1).source;
	for (uint16_t port = 1; port < 500; port++) {
		struct ends left;

		made.source_port = port;
		left = offered(rig, &made, 1);
		assert_int_equal(left.source, address);
		assert_int_equal(left.source_port & 1, port & 1);
	}
	for (uint32_t i = 0; i < 500; i++) {
		made.source = host + i;
		used[offered(rig, &made, 1).source - outside] = true;
	}
	for (size_t i = 0; i < RTE_DIM(used); i++)
		assert_true(used[i]);
}

/* No two endpoints have one port outside. */
static void ports_are_not_shared(void **state)
{
	static bool used[65536];
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"addresses", 1}, {"sessions", 1 << 17}};
	struct made made = udp;

	rig_make(rig, "NAT", settings, 2);
	for (uint32_t i = 0; i < 64512; i++) {
		uint16_t port;

		made.source = host + i;
		made.source_port = (uint16_t)(i / 3);
		port = offered(rig, &made, 1).source_port;
		assert_false(used[port]);
		used[port] = true;
	}
	made.source = host - 1; /* one more than there are ports */
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "exhausted"), 1);
	made.protocol = IPPROTO_TCP; /* which has its own */
	offered(rig, &made, 1);
}

/* A full table lets no new session through, and counts. */
static void full_table(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"sessions", 16}};
	struct made made = udp;

	rig_make(rig, "NAT", settings, 1);
	for (uint32_t i = 0; i < 200; i++) {
		made.destination = server + i;
		rig_offer(rig, packet_made(rig, &made), 1);
	}
	assert_true(rig_count(rig, "full") > 100);
	assert_int_equal(rig_count(rig, "full") + rig_count(rig, "outward"), 200);
}

/* Let `s` seconds pass, during which nothing but age happens. */
static uint64_t wait_for(struct rig *rig, uint64_t now_us, unsigned int s)
{
	for (unsigned int i = 0; i < s; i++)
		rig_offer_burst(rig, NULL, 0, now_us + (i + 1) * SECOND);
	return now_us + s * SECOND;
}

/* Whether what is outside still gets in. */
static bool gets_in(struct rig *rig, const struct made *back, uint64_t now_us)
{
	rig_offer(rig, packet_made(rig, back), now_us);
	return rig->out.n == 1;
}

/* UDP is forgotten after its timeout, which only packets from inside put off (RFC 4787, REQ-6). */
static void udp_times_out(void **state)
{
	struct rig *rig = *state;
	uint64_t now = SECOND;
	struct made back;

	rig_make(rig, "NAT", one_address, 2);
	back = answer(&udp, offered(rig, &udp, now));
	now = wait_for(rig, now, 200);
	offered(rig, &udp, now);
	now = wait_for(rig, now, 299);
	assert_true(gets_in(rig, &back, now));
	now = wait_for(rig, now, 40);
	assert_false(gets_in(rig, &back, now));
	assert_int_equal(rig_count(rig, "unmapped"), 1);
	assert_int_equal(rig_count(rig, "aged"), 1);
}

static void tcp_packet(struct rig *rig, struct made *made, uint8_t flags, uint64_t now)
{
	made->tcp_flags = flags;
	offered(rig, made, now);
}

enum { SYN = RTE_TCP_SYN_FLAG, ACK = RTE_TCP_ACK_FLAG, FIN = RTE_TCP_FIN_FLAG };

/* The rest of a handshake. */
static void answer_syn(struct rig *rig, struct made *made, struct made *back, uint64_t now)
{
	tcp_packet(rig, back, SYN | ACK, now);
	tcp_packet(rig, made, ACK, now);
}

/* TCP lives 4 minutes while it opens or closes, 2 hours and 4 minutes in between (RFC 5382). */
static void tcp_times_out(void **state)
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
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct made made = udp, back;
		uint64_t now = SECOND;

		made.protocol = IPPROTO_TCP;
		made.tcp_flags = SYN;
		rig_make(rig, "NAT", one_address, 2);
		back = answer(&made, offered(rig, &made, now));
		if (cases[i].opened)
			answer_syn(rig, &made, &back, now);
		for (int j = 0; j < 3; j++)
			if (cases[i].closing[j])
				tcp_packet(rig, j == 1 ? &back : &made, cases[i].closing[j], now);
		if (cases[i].opened_again) {
			tcp_packet(rig, &made, SYN, now);
			answer_syn(rig, &made, &back, now);
		}
		now = wait_for(rig, now, cases[i].lives_s - 1);
		assert_int_equal(rig_count(rig, "aged"), 0);
		now = wait_for(rig, now, 40);
		assert_int_equal(rig_count(rig, "aged"), 1);
	}
}

/* What was forgotten gives its port back: one after another, more use it than there are ports. */
static void ports_come_back(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"addresses", 1},    {"sessions", 512},
					      {"udp_s", 1},        {"icmp_s", 1},
					      {"transitory_s", 1}, {"established_s", 1}};
	struct made made = udp;
	uint64_t now = SECOND;

	rig_make(rig, "NAT", settings, RTE_DIM(settings));
	for (uint32_t i = 0; i < 100000; i++) {
		made.source_port = (uint16_t)i;
		made.source = host + i;
		offered(rig, &made, now += SECOND / 100);
	}
	assert_int_equal(rig_count(rig, "exhausted") + rig_count(rig, "full"), 0);
	assert_true(rig_count(rig, "aged") > 99000);
}

/* Two hosts inside reach each other by their addresses outside (RFC 4787, REQ-9). */
static void hairpins(void **state)
{
	struct rig *rig = *state;
	struct made other = udp;
	struct ends first, turned;

	rig_make(rig, "NAT", one_address, 2);
	first = offered(rig, &udp, 1);
	other.source = host + 5;
	other.destination = first.source;
	other.destination_port = first.source_port;
	turned = offered(rig, &other, 1);
	assert_int_equal(turned.source, outside);
	assert_int_not_equal(turned.source_port, other.source_port);
	assert_int_equal(turned.destination, host);
	assert_int_equal(turned.destination_port, udp.source_port);
	assert_int_equal(sent(rig)->port, NF_INSIDE);
	assert_int_equal(rig_count(rig, "hairpinned"), 1);
}

static void make_icmp(struct rte_mbuf *packet, uint8_t type, uint16_t length)
{
	struct rte_icmp_hdr *icmp = rte_pktmbuf_mtod_offset(packet, struct rte_icmp_hdr *, 34);

	icmp->icmp_type = type;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, length);
}

/* A ping keeps to its host by its identifier, which is another outside. */
static void pings(void **state)
{
	struct rig *rig = *state;
	struct made ping = udp, pong;
	struct rte_mbuf *packet;
	struct ends left;

	ping.protocol = IPPROTO_ICMP;
	rig_make(rig, "NAT", one_address, 2);
	left = offered(rig, &ping, 1);
	assert_int_equal(left.source, outside);
	pong = answer(&ping, left);
	pong.source_port = left.source_port;
	packet = packet_made(rig, &pong);
	make_icmp(packet, RTE_IP_ICMP_ECHO_REPLY, 16);
	rig_offer(rig, packet, 2);
	assert_true(checksums_right(sent(rig)));
	assert_int_equal(ends_of(sent(rig)).destination, host);
	assert_int_equal(ends_of(sent(rig)).source_port, ping.source_port);
	rig_offer(rig, packet_made(rig, &pong), 2); /* a request from outside */
	assert_int_equal(rig_count(rig, "unsupported"), 1);
}

/* An error of ICMP about a packet, quoting `quoted` bytes of it; the packet is freed. */
static struct rte_mbuf *error_about(struct rig *rig, struct rte_mbuf *packet, uint16_t quoted,
				    uint32_t from, uint32_t to, uint16_t port)
{
	struct made made = {
		.source = from,
		.destination = to,
		.protocol = IPPROTO_ICMP,
		.payload = rte_pktmbuf_mtod_offset(packet, const void *, 14),
		.payload_length = quoted,
		.port = port,
	};
	struct rte_mbuf *error = packet_made(rig, &made);

	make_icmp(error, 3, 8 + quoted);
	rte_pktmbuf_free(packet);
	return error;
}

/* The packet that left, as somebody on its way has it. */
static struct rte_mbuf *copy_sent(struct rig *rig)
{
	uint8_t bytes[200];
	const uint16_t length = packet_bytes(sent(rig), bytes, sizeof(bytes));

	return packet_of(rig, bytes, length);
}

/* An error from outside reaches the host inside, and quotes what that has sent (RFC 5508). */
static void errors_from_outside(void **state)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	static const uint16_t quotes[] = {28, 36, 40};
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(protocols) * RTE_DIM(quotes); i++) {
		const uint16_t quoted = quotes[i / RTE_DIM(protocols)];
		struct made made = udp;
		struct rte_mbuf *original, *error;

		made.protocol = protocols[i % RTE_DIM(protocols)];
		made.payload_length = 0;
		if (made.protocol != IPPROTO_TCP && quoted > 28)
			continue;
		rig_make(rig, "NAT", one_address, 2);
		offered(rig, &made, 1);
		error = error_about(rig, copy_sent(rig), quoted, server + 77, outside, NF_OUTSIDE);
		rig_offer(rig, error, 1);
		assert_true(checksums_right(sent(rig)));
		assert_int_equal(ends_of(sent(rig)).source, server + 77);
		assert_int_equal(ends_of(sent(rig)).destination, host);
		assert_int_equal(sent(rig)->port, NF_INSIDE);
		original = packet_made(rig, &made);
		assert_memory_equal(rte_pktmbuf_mtod_offset(sent(rig), uint8_t *, 42),
				    rte_pktmbuf_mtod_offset(original, uint8_t *, 14), quoted);
		rte_pktmbuf_free(original);
		assert_int_equal(rig_count(rig, "errors"), 1);
	}
}

/* An error from inside leaves from outside's address, and quotes what came from there. */
static void errors_from_inside(void **state)
{
	struct rig *rig = *state;
	struct made back;
	struct rte_mbuf *came;

	rig_make(rig, "NAT", one_address, 2);
	back = answer(&udp, offered(rig, &udp, 1));
	offered(rig, &back, 1);
	rig_offer(rig, error_about(rig, copy_sent(rig), 36, host, server, NF_INSIDE), 1);
	assert_true(checksums_right(sent(rig)));
	assert_int_equal(ends_of(sent(rig)).source, outside);
	assert_int_equal(ends_of(sent(rig)).destination, server);
	came = packet_made(rig, &back);
	assert_memory_equal(rte_pktmbuf_mtod_offset(sent(rig), uint8_t *, 42),
			    rte_pktmbuf_mtod_offset(came, uint8_t *, 14), 36);
	rte_pktmbuf_free(came);
}

/* What pads the frame behind an error that quotes little is left alone. */
static void padding_behind_errors(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;
	struct rte_mbuf *error;
	uint8_t padding[30];
	char *end;

	made.protocol = IPPROTO_TCP;
	memset(padding, 0xaa, sizeof(padding));
	rig_make(rig, "NAT", one_address, 2);
	offered(rig, &made, 1);
	error = error_about(rig, copy_sent(rig), 28, server, outside, NF_OUTSIDE);
	end = rte_pktmbuf_append(error, sizeof(padding));
	if (!end)
		abort();
	memcpy(end, padding, sizeof(padding));
	rig_offer(rig, error, 1);
	assert_memory_equal(rte_pktmbuf_mtod_offset(sent(rig), uint8_t *, 42 + 28), padding,
			    sizeof(padding));
}

/* Errors about nothing, with wrong checksums, or cut too short go nowhere. */
static void bad_errors(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *error;

	rig_make(rig, "NAT", one_address, 2);
	offered(rig, &udp, 1);
	for (uint16_t quoted = 0; quoted < 28; quoted += 3) {
		error = error_about(rig, copy_sent(rig), quoted, server, outside, NF_OUTSIDE);
		rig_offer(rig, error, 1);
		assert_int_equal(rig->out.n, 0);
		offered(rig, &udp, 1);
	}
	error = error_about(rig, copy_sent(rig), 28, server, outside, NF_OUTSIDE);
	rte_pktmbuf_mtod_offset(error, uint8_t *, 42)[27] ^= 1;
	rig_offer(rig, error, 1);
	assert_int_equal(rig->out.n, 0);
	error = error_about(rig, packet_made(rig, &udp), 28, server, outside, NF_OUTSIDE);
	rig_offer(rig, error, 1);
	assert_int_equal(rig->out.n, 0);
}

/* An error that reaches another address than the one that it is about goes nowhere. */
static void errors_to_another_address(void **state)
{
	struct rig *rig = *state;
	uint32_t address;

	rig_make(rig, "NAT", NULL, 0);
	for (uint32_t other = 0; other < 2; other++) {
		address = offered(rig, &udp, 1).source;
		rig_offer(rig,
			  error_about(rig, copy_sent(rig), 28, server,
				      other ? outside + (address - outside + 1) % 16 : address,
				      NF_OUTSIDE),
			  1);
		assert_int_equal(rig->out.n, !other);
	}
}

/* Fragments, other protocols, IPv6 and what nobody asked for are freed and counted. */
static void what_is_freed(void **state)
{
	static const struct {
		struct made made;
		const char *counted;
	} cases[] = {
		{{.fragment = RTE_IPV4_HDR_MF_FLAG}, "fragments"},
		{{.fragment = 20}, "fragments"},
		{{.protocol = 47, .payload_length = 20}, "unsupported"},
		{{.port = NF_OUTSIDE, .destination = RTE_IPV4(203, 0, 113, 0)}, "unmapped"},
		{{.port = NF_OUTSIDE, .destination = RTE_IPV4(10, 0, 0, 1)}, "unmapped"},
	};
	struct rig *rig = *state;
	struct rte_mbuf *six;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig_make(rig, "NAT", one_address, 2);
		rig_offer(rig, packet_made(rig, &cases[i].made), 1);
		assert_int_equal(rig->out.n, 0);
		assert_int_equal(rig_count(rig, cases[i].counted), 1);
	}
	six = packet_made(rig, &udp);
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_offer(rig, six, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
}

/* Packets of one new flow in a burst are one session. */
static void one_session_in_a_burst(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *burst[] = {packet_made(rig, &udp), packet_made(rig, &udp)};

	rig_make(rig, "NAT", one_address, 2);
	rig_offer_burst(rig, burst, 2, 1);
	assert_int_equal(rig->out.n, 2);
	assert_memory_equal(rte_pktmbuf_mtod(rig->out.packets[0], void *),
			    rte_pktmbuf_mtod(rig->out.packets[1], void *), 50);
	assert_int_equal(rig_count(rig, "started"), 1);
}

/* No malformed packet is sent; hostile ones, and mutated errors, do no harm. */
static void hostile_packets(void **state)
{
	const uint32_t addresses[] = {host, server, outside};
	struct rig *rig = *state;

	rig_make(rig, "NAT", one_address, 2);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "outward"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), NULL);
	for (int i = 0; i < 2; i++) {
		struct made made = udp;

		made.protocol = i ? IPPROTO_TCP : IPPROTO_UDP;
		offered(rig, &made, rig->nf->now_us);
		offer_mutations(rig, error_about(rig, copy_sent(rig), 28 + 8 * i, server, outside,
						 NF_OUTSIDE));
	}
	assert_true(rig_count(rig, "errors") > 1000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(undone_it_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(no_checksum_stays_none, setup, teardown),
		cmocka_unit_test_setup_teardown(checksum_is_never_none, setup, teardown),
		cmocka_unit_test_setup_teardown(mapping_does_not_depend_on_the_other_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(addresses_are_paired_and_parity_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ports_are_not_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(full_table, setup, teardown),
		cmocka_unit_test_setup_teardown(udp_times_out, setup, teardown),
		cmocka_unit_test_setup_teardown(tcp_times_out, setup, teardown),
		cmocka_unit_test_setup_teardown(ports_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(hairpins, setup, teardown),
		cmocka_unit_test_setup_teardown(pings, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_from_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_from_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(padding_behind_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_to_another_address, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(one_session_in_a_burst, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_packets, setup, teardown),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
