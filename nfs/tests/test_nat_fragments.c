#include <stdlib.h>

#include "core/fragment.h"
#include "core/random.h"
#include "tests/nat_rig.h"

#define LONGEST 2000

/* A long packet with a random payload; an answer if it is ICMP from outside. */
static struct rte_mbuf *long_packet(struct rig *rig, const struct packet_spec *like,
				    uint16_t length, uint64_t *random)
{
	struct packet_spec spec = *like;
	uint8_t payload[LONGEST];
	struct rte_mbuf *packet;

	for (uint16_t i = 0; i < length; i++)
		payload[i] = (uint8_t)random_next(random);
	spec.payload = payload;
	spec.payload_length = length;
	packet = packet_from_spec(rig, &spec);
	if (like->protocol == IPPROTO_ICMP && like->from == NF_OUTSIDE) {
		struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ipv4_of(packet) + 1);

		icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
		icmp->icmp_cksum = 0;
		icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + length);
	}
	return packet;
}

static struct rte_mbuf *copy_of(struct rig *rig, struct rte_mbuf *packet)
{
	uint8_t bytes[LONGEST + 100];
	struct rte_mbuf *copy = packet_of(rig, bytes, packet_bytes(packet, bytes, sizeof(bytes)));

	metadata_inherit(copy, packet);
	return copy;
}

/* Fragments of a copy of a packet; returns their number. */
static uint16_t fragments_of(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu,
			     struct rte_mbuf **fragments)
{
	struct rte_mbuf *all[FRAGMENTS_MOST], *copy = copy_of(rig, packet);
	const struct packet parsed = packet_parse(copy);
	const int n = ipv4_fragment(copy, &parsed, mtu, rig->pool, all);

	assert_in_range(n, 2, NF_BURST);
	memcpy(fragments, all, n * sizeof(*fragments));
	return (uint16_t)n;
}

static void shuffle(struct rte_mbuf **packets, uint16_t n, uint64_t *random)
{
	for (uint16_t i = n - 1; i > 0; i--) {
		const uint32_t other = random_below(random, i + 1);

		RTE_SWAP(packets[i], packets[other]);
	}
}

/* Join the sent fragments, which must be of one datagram in order; returns its length. */
static uint16_t join_sent(struct rig *rig, uint16_t mtu, uint8_t *bytes)
{
	struct rte_ipv4_hdr *ip = NULL;
	uint16_t length = 0, behind = 0;

	for (uint32_t i = 0; i < rig->out.n; i++) {
		uint8_t part[LONGEST + 100];
		const uint16_t n = packet_bytes(rig->out.packets[i], part, sizeof(part));
		const struct packet packet = packet_parse(rig->out.packets[i]);
		const uint16_t skipped = i == 0 ? 0 : packet.l3 + sizeof(*ip);
		const struct rte_ipv4_hdr *header = (struct rte_ipv4_hdr *)(part + packet.l3);
		const uint16_t flags = rte_be_to_cpu_16(header->fragment_offset);

		assert_header_checksum(rig->out.packets[i]);
		assert_true(rte_be_to_cpu_16(header->total_length) <= mtu);
		assert_int_equal((flags & RTE_IPV4_HDR_OFFSET_MASK) * 8, i == 0 ? 0 : behind);
		assert_int_equal(!(flags & RTE_IPV4_HDR_MF_FLAG), i + 1 == rig->out.n);
		assert_int_equal(side_of(rig->out.packets[i]), side_of(rig->out.packets[0]));
		memcpy(bytes + length, part + skipped, n - skipped);
		length += n - skipped;
		behind = length - packet.l3 - sizeof(*ip);
		ip = (struct rte_ipv4_hdr *)(bytes + packet.l3);
	}
	assert_non_null(ip);
	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + behind);
	ip->fragment_offset &= RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	header_checksum_set(ip);
	return length;
}

/*
 * Offer a packet whole and in fragments in any order: what is sent must be the same. Returns the
 * whole one that was sent.
 */
static struct rte_mbuf *assert_alike(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu,
				     uint64_t *random)
{
	uint8_t whole[LONGEST + 100], joined[LONGEST + 100];
	struct rte_mbuf *fragments[NF_BURST], *sent;
	const uint16_t n = fragments_of(rig, packet, mtu, fragments);
	uint16_t length;

	rig_offer(rig, packet, rig->nf->now_us);
	assert_true(checksums_right(rig_sent(rig)));
	sent = copy_of(rig, rig_sent(rig));
	length = packet_bytes(sent, whole, sizeof(whole));
	shuffle(fragments, n, random);
	rig_offer_burst(rig, fragments, n, rig->nf->now_us);
	assert_true(rig->out.n > 1);
	assert_int_equal(side_of(rig->out.packets[0]), side_of(sent));
	assert_int_equal(join_sent(rig, mtu, joined), length);
	assert_memory_equal(whole, joined, length);
	return sent;
}

/*
 * Fragments of UDP, TCP and ICMP in any order, from inside, from outside and hairpinned, are
 * translated like the whole packet, and sent no longer than they came (RFC 4787, REQ-14).
 */
static void fragments_are_translated_like_the_whole_packet(void **state)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	static const uint16_t mtus[] = {100, 268, 576, 1280, 1500};
	struct rig *rig = *state;
	uint64_t random = 1;

	for (size_t i = 0; i < 10 * RTE_DIM(protocols) * RTE_DIM(mtus); i++) {
		const uint16_t mtu = mtus[i / RTE_DIM(protocols) % RTE_DIM(mtus)];
		const uint16_t length = mtu + random_below(&random, RTE_MIN(20 * (mtu - 90), 480));
		struct packet_spec out = udp, back, across = udp;
		struct rte_mbuf *sent;
		struct ends left;

		out.protocol = across.protocol = protocols[i % RTE_DIM(protocols)];
		out.vlan = random_below(&random, 2) * 9;
		out.id = across.id = (uint16_t)random_next(&random);
		rig_make(rig, "NAT", one_address, 2);
		sent = assert_alike(rig, long_packet(rig, &out, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_OUTSIDE);
		rte_pktmbuf_free(sent);
		out.vlan = 0;
		left = offered(rig, &out, 1);
		assert_int_equal(left.source, outside);
		back = reply_of(&out, left);
		if (out.protocol == IPPROTO_ICMP)
			back.source_port = left.source_port;
		sent = assert_alike(rig, long_packet(rig, &back, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_INSIDE);
		assert_int_equal(ends_of(sent).destination, host);
		rte_pktmbuf_free(sent);
		assert_int_equal(rig_count(rig, "reassembled"), 2);
		if (out.protocol == IPPROTO_ICMP) /* not hairpinned */
			continue;
		across.source = host + 5;
		across.destination = left.source;
		across.destination_port = left.source_port;
		sent = assert_alike(rig, long_packet(rig, &across, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_INSIDE);
		assert_int_equal(rig_count(rig, "hairpinned"), 2);
		rte_pktmbuf_free(sent);
	}
}

/* An ICMP error that arrives in fragments is translated whole, with its checksum. */
static void fragmented_errors_are_translated(void **state)
{
	struct rig *rig = *state;
	struct packet_spec error = {.source = server + 7,
				    .destination = outside,
				    .protocol = IPPROTO_ICMP,
				    .from = NF_OUTSIDE};
	uint64_t random = 2;
	struct rte_icmp_hdr *icmp;
	struct rte_mbuf *packet;
	uint8_t quoted[900];

	rig_make(rig, "NAT", one_address, 2);
	rig_offer(rig, long_packet(rig, &udp, 1000, &random), 1);
	packet_bytes(rig_sent(rig), quoted, sizeof(quoted));
	error.payload = quoted + 14;
	error.payload_length = sizeof(quoted) - 14;
	packet = packet_from_spec(rig, &error);
	icmp = (struct rte_icmp_hdr *)(ipv4_of(packet) + 1);
	icmp->icmp_type = 3;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, 8 + error.payload_length);
	packet = assert_alike(rig, packet, 200, &random);
	assert_int_equal(ends_of(packet).destination, host);
	assert_int_equal(rig_count(rig, "errors"), 2);
	rte_pktmbuf_free(packet);
}

/* Duplicates and a packet between its fragments do not lose a datagram; each is sent once. */
static void duplicates_and_others_do_no_harm(void **state)
{
	struct rig *rig = *state;
	uint64_t random = 3;
	struct rte_mbuf *packet, *fragments[NF_BURST], *burst[NF_BURST];
	uint16_t n, offered = 0;

	rig_make(rig, "NAT", one_address, 2);
	packet = long_packet(rig, &udp, 1000, &random);
	n = fragments_of(rig, packet, 576, fragments);
	assert_int_equal(n, 2);
	burst[offered++] = fragments[1];
	burst[offered++] = packet_from_spec(rig, &udp);
	burst[offered++] = copy_of(rig, fragments[1]);
	burst[offered++] = fragments[0];
	rig_offer_burst(rig, burst, offered, 1);
	assert_int_equal(rig->out.n, 3);
	assert_int_equal(rig_count(rig, "duplicates"), 1);
	assert_int_equal(rig_count(rig, "fragments"), 3);
	assert_int_equal(rig_count(rig, "reassembled"), 1);
	assert_int_equal(rig_count(rig, "fragments_sent"), 2);
	assert_int_equal(rig_count(rig, "outward"), 2);
	assert_int_equal(rig_count(rig, "started"), 1);
	rte_pktmbuf_free(packet);
}

/* DF on the fragments, as senders that discover the path's MTU set it, is kept. */
static void dont_fragment_of_fragments_is_kept(void **state)
{
	struct rig *rig = *state;
	uint64_t random = 4;
	struct rte_mbuf *packet, *fragments[NF_BURST];
	uint8_t bytes[LONGEST + 100];
	uint16_t n;

	rig_make(rig, "NAT", one_address, 2);
	packet = long_packet(rig, &udp, 1000, &random);
	for (int df = 0; df < 2; df++) {
		n = fragments_of(rig, packet, 400, fragments);
		for (uint16_t i = 0; i < n; i++) {
			if (df)
				ipv4_of(fragments[i])->fragment_offset |=
					RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
			header_checksum_set(ipv4_of(fragments[i]));
		}
		rig_offer_burst(rig, fragments, n, 1);
		assert_int_equal(rig->out.n, n);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(ipv4_of(rig->out.packets[i])->fragment_offset &
						 RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
					 df ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0);
		join_sent(rig, 400, bytes);
	}
	rte_pktmbuf_free(packet);
}

/* Fragments of incomplete datagrams are freed after the timeout, or when the function ends. */
static void incomplete_datagrams_are_freed(void **state)
{
	const struct nf_setting settings[] = {{"addresses", 1}, {"sessions", 64}, {"pending_s", 2}};
	struct rig *rig = *state;
	uint64_t random = 5;
	struct rte_mbuf *packet, *fragments[NF_BURST];

	rig_make(rig, "NAT", settings, 3);
	packet = long_packet(rig, &udp, 1000, &random);
	assert_int_equal(fragments_of(rig, packet, 576, fragments), 2);
	rig_process(rig, fragments, 1, 1);
	assert_int_equal(rig->out.n, 0);
	rig_process(rig, NULL, 0, 2 * SECOND + 1);
	assert_int_equal(rig_count(rig, "unassembled"), 0);
	rig->nf->now_us = 2 * SECOND + 2;
	nf_poll(rig->nf, &rig->out);
	assert_int_equal(rig_count(rig, "unassembled"), 1);
	rig_offer_burst(rig, fragments + 1, 1, 3 * SECOND);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "unassembled"), 2);
	assert_int_equal(rig_count(rig, "started"), 0);
	rte_pktmbuf_free(packet);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
}

/* Fragments that cannot be translated are not held. */
static void useless_fragments_are_not_held(void **state)
{
	static const struct {
		struct packet_spec packet_spec;
		const char *counted;
	} cases[] = {
		{{.fragment = RTE_IPV4_HDR_MF_FLAG, .protocol = 47, .payload_length = 8},
		 "unsupported"},
		{{.fragment = 20, .protocol = 47, .payload_length = 8}, "unsupported"},
		{{.fragment = 20,
		  .from = NF_OUTSIDE,
		  .destination = RTE_IPV4(10, 0, 0, 1),
		  .payload_length = 8},
		 "unmapped"},
		{{.fragment = 20, .payload_length = 8}, "malformed"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *fragment = packet_from_spec(rig, &cases[i].packet_spec);

		if (strcmp(cases[i].counted, "malformed") == 0)
			ipv4_of(fragment)->hdr_checksum ^= 1;
		rig_make(rig, "NAT", one_address, 2);
		rig_process(rig, &fragment, 1, 1);
		assert_int_equal(rig_count(rig, cases[i].counted), 1);
		assert_int_equal(rig_count(rig, "fragments"), 0);
		assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
	}
}

/* Congestion marks are joined; a datagram whose other fragments lack ECN is freed (RFC 3168). */
static void congestion_marks_are_joined(void **state)
{
	static const struct {
		uint8_t marks[2], expected; /* 0xff: freed */
	} cases[] = {{{2, 2}, 2}, {{2, 3}, 3}, {{3, 1}, 3}, {{0, 3}, 0xff}};
	struct rig *rig = *state;
	uint64_t random = 6;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *fragments[NF_BURST],
			*packet = long_packet(rig, &udp, 1000, &random);

		assert_int_equal(fragments_of(rig, packet, 576, fragments), 2);
		for (int j = 0; j < 2; j++) {
			ipv4_of(fragments[j])->type_of_service = cases[i].marks[j];
			header_checksum_set(ipv4_of(fragments[j]));
		}
		rig_make(rig, "NAT", one_address, 2);
		rig_offer_burst(rig, fragments, 2, 1);
		assert_int_equal(rig_count(rig, "congested"), cases[i].expected == 0xff);
		assert_int_equal(rig->out.n, cases[i].expected == 0xff ? 0 : 2);
		for (uint32_t j = 0; j < rig->out.n; j++) {
			assert_header_checksum(rig->out.packets[j]);
			assert_int_equal(ipv4_of(rig->out.packets[j])->type_of_service,
					 cases[i].expected);
		}
		rte_pktmbuf_free(packet);
	}
}

/* Without buffers for all fragments, none is sent. */
static void without_buffers_nothing_is_sent(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *taken[RIG_PACKETS], *fragments[NF_BURST], *packet;
	uint64_t random = 7;
	uint16_t n;

	packet = long_packet(rig, &udp, 1000, &random);
	n = fragments_of(rig, packet, 300, fragments);
	rig_make(rig, "NAT", one_address, 2);
	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS - 2), 0);
	rig_offer_burst(rig, fragments, n, 1);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "no_room"), 1);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS - 2);
	rte_pktmbuf_free(packet);
}

/* A flood of fragments does not stop datagrams of other hosts (RFC 4787, REQ-14a). */
static void a_flood_does_not_stop_other_hosts(void **state)
{
	const struct nf_setting settings[] = {{"addresses", 1}, {"sessions", 64}, {"pending", 64}};
	struct rig *rig = *state;
	uint64_t random = 8;

	rig_make(rig, "NAT", settings, 3);
	for (uint16_t id = 0; id < 100; id++) {
		struct rte_mbuf *fragments[NF_BURST],
			*packet = long_packet(rig, &udp, 1000, &random);

		fragments_of(rig, packet, 576, fragments);
		rig_process(rig, fragments, 1, SECOND + id);
		for (uint16_t i = 0; i < 100; i++) {
			struct packet_spec spec = udp;
			struct rte_mbuf *flood;

			spec.source = host + 100;
			spec.id = (uint16_t)random_next(&random);
			spec.fragment = RTE_IPV4_HDR_MF_FLAG;
			flood = packet_from_spec(rig, &spec);
			rig_process(rig, &flood, 1, SECOND + id);
			assert_int_equal(rig->out.n, 0);
		}
		rig_process(rig, fragments + 1, 1, SECOND + id);
		assert_int_equal(rig->out.n, 2);
		rte_pktmbuf_free(packet);
	}
}

static void check_fragment(struct rte_mbuf *mbuf)
{
	const struct packet packet = packet_parse(mbuf);
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, &packet);

	assert_true(packet_has_ipv4(&packet));
	if (side_of(mbuf) == NF_OUTSIDE)
		assert_int_equal(rte_be_to_cpu_32(ip->src_addr), outside);
	assert_int_not_equal(rte_be_to_cpu_32(ip->dst_addr), outside);
}

/* Mutated fragments of all protocols and directions leave translated, or are freed. */
static void mutated_fragments_leave_translated(void **state)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	struct rig *rig = *state;
	struct rte_mbuf *packets[NF_BURST];
	uint64_t random = 9;
	unsigned int n = 0;

	rig_make(rig, "NAT", one_address, 2);
	for (size_t i = 0; i < RTE_DIM(protocols); i++) {
		struct packet_spec out = udp, back;
		struct rte_mbuf *packet;

		out.protocol = protocols[i];
		back = reply_of(&out, offered(rig, &out, 1));
		packet = long_packet(rig, &out, 300, &random);
		n += fragments_of(rig, packet, 200, packets + n);
		rte_pktmbuf_free(packet);
		packet = long_packet(rig, &back, 300, &random);
		n += fragments_of(rig, packet, 200, packets + n);
		rte_pktmbuf_free(packet);
	}
	offer_mutations_of(rig, packets, n, check_fragment);
	assert_true(rig_count(rig, "reassembled") > 500);
	assert_true(rig_count(rig, "inward") > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fragments_are_translated_like_the_whole_packet,
						setup, teardown),
		cmocka_unit_test_setup_teardown(fragmented_errors_are_translated, setup, teardown),
		cmocka_unit_test_setup_teardown(duplicates_and_others_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(dont_fragment_of_fragments_is_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(incomplete_datagrams_are_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(useless_fragments_are_not_held, setup, teardown),
		cmocka_unit_test_setup_teardown(congestion_marks_are_joined, setup, teardown),
		cmocka_unit_test_setup_teardown(without_buffers_nothing_is_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_does_not_stop_other_hosts, setup, teardown),
		cmocka_unit_test_setup_teardown(mutated_fragments_leave_translated, setup,
						teardown),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
