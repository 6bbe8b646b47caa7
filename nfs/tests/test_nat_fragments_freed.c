#include "core/random.h"
#include "tests/nat_rig.h"

/* Fragments of incomplete datagrams are freed after the timeout, or when the function ends. */
RIG_TEST(incomplete_datagrams_are_freed)
{
	uint64_t random = 5;
	struct rte_mbuf *packet, *fragments[NF_BURST];

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}, {"pending_s", 2});
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
	assert_counts(rig, {"unassembled", 2}, {"started", 0});
	rte_pktmbuf_free(packet);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
}

/* Fragments that cannot be translated are not held. */
RIG_TEST(useless_fragments_are_not_held)
{
	static const struct {
		struct packet_spec packet_spec;
		const char *counted;
	} cases[] = {
		{{.fragment = RTE_IPV4_HDR_MF_FLAG, .protocol = IPPROTO_AH, .payload_length = 8},
		 "unsupported"},
		{{.fragment = 20, .protocol = IPPROTO_AH, .payload_length = 8}, "unsupported"},
		{{.fragment = 20,
		  .from = NF_OUTSIDE,
		  .destination = RTE_IPV4(10, 0, 0, 1),
		  .payload_length = 8},
		 "unmapped"},
		{{.fragment = 20, .payload_length = 8}, "malformed"},
	};

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

/* Without buffers for all fragments, none is sent. */
RIG_TEST(without_buffers_nothing_is_sent)
{
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

/* Whether fragmented datagrams of a host pass beside a flood of fragments from another one. */
static bool passes_beside(struct rig *rig, uint32_t flooder, uint64_t *random)
{
	bool passes = true;

	for (uint16_t id = 0; id < 16; id++) {
		struct rte_mbuf *fragments[NF_BURST], *packet = long_packet(rig, &udp, 1000, random);

		fragments_of(rig, packet, 576, fragments);
		rig_process(rig, fragments, 1, SECOND + id);
		for (uint16_t i = 0; i < 100; i++) {
			struct packet_spec spec = udp;
			struct rte_mbuf *flood;

			spec.source = flooder;
			spec.id = (uint16_t)random_next(random);
			spec.fragment = RTE_IPV4_HDR_MF_FLAG;
			flood = packet_from_spec(rig, &spec);
			rig_process(rig, &flood, 1, SECOND + id);
			assert_int_equal(rig->out.n, 0);
		}
		rig_process(rig, fragments + 1, 1, SECOND + id);
		passes = passes && rig->out.n == 2;
		rte_pktmbuf_free(packet);
	}
	return passes;
}

/*
 * A flood of fragments does not stop datagrams of other hosts (RFC 4787, REQ-14a), but for the few
 * that have the same share as the flooder: with the keys that were drawn, one host in 64.
 */
RIG_TEST(a_flood_does_not_stop_other_hosts)
{
	uint64_t random = 8;
	int stopped = 0;

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}, {"pending", 64});
	for (uint32_t flooder = 0; flooder < 8; flooder++)
		stopped += !passes_beside(rig, host + 100 + flooder, &random);
	assert_true(stopped <= 2);
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
RIG_TEST(mutated_fragments_leave_translated)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
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
