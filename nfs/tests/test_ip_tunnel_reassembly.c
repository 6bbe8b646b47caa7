#include <stdlib.h>

#include "core/random.h"
#include "tests/hostile.h"
#include "tests/tunnel_rig.h"

/* A packet fragmented in the tunnel is reassembled from fragments in any order. */
RIG_TEST(reassembles_in_any_order)
{
	static const uint16_t sizes[] = {184, 480, 720, 1424};
	uint64_t random = 4;

	for (int i = 0; i < 200; i++) {
		struct rte_mbuf *fragments[TUNNELLED_MOST], *original;
		uint8_t before[2000], after[2000];
		uint16_t n = tunnelled(rig, 77, sizes[i % RTE_DIM(sizes)], fragments, &original);
		uint16_t length;

		for (uint16_t j = n - 1; j > 0; j--) {
			const uint32_t other = random_below(&random, j + 1);

			RTE_SWAP(fragments[j], fragments[other]);
		}
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer_burst(rig, fragments, n, 1);
		assert_true(checksums_right(rig_sent(rig)));
		length = packet_bytes(original, before, sizeof(before));
		assert_int_equal(packet_bytes(rig_sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, length);
		assert_int_equal(rig_count(rig, "fragments_received"), n);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		rte_pktmbuf_free(original);
	}
}

/* Insert a tag into an untagged frame. */
static void add_tag(struct rte_mbuf *packet)
{
	char *front = rte_pktmbuf_prepend(packet, sizeof(struct rte_vlan_hdr));

	if (!front)
		abort();
	memmove(front, front + 4, 12);
	memcpy(front + 12, ((uint8_t[]){0x81, 0, 0, 5}), 4);
}

/* Padding behind the datagram, its last ten bytes in another segment. */
static struct rte_mbuf *padded(struct rig *rig, struct rte_mbuf *packet)
{
	char *behind = rte_pktmbuf_append(packet, 50);

	if (!behind)
		abort();
	memset(behind, 0xaa, 50);
	return in_two(rig, packet, rte_pktmbuf_pkt_len(packet) - 10);
}

/* Fragments may differ in tags and be padded over several segments. */
RIG_TEST(fragments_may_differ_in_tags_and_padding)
{
	for (int i = 0; i < 6; i++) {
		struct rte_mbuf *fragments[TUNNELLED_MOST], *original;
		uint8_t before[2000], after[2000];
		const uint16_t n = tunnelled(rig, 77, 720, fragments, &original);

		assert_int_equal(n, 2);
		add_tag(fragments[i % 2]);
		if (i >= 2)
			fragments[0] = padded(rig, fragments[0]);
		if (i >= 4)
			RTE_SWAP(fragments[0], fragments[1]);
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer_burst(rig, fragments, n, 1);
		assert_int_equal(rte_pktmbuf_pkt_len(rig_sent(rig)),
				 rte_pktmbuf_pkt_len(original) + (i % 2 ? 0 : 4));
		packet_bytes(original, before, sizeof(before));
		packet_bytes(rig_sent(rig), after, sizeof(after));
		assert_memory_equal(before + 14, after + (i % 2 ? 14 : 18),
				    rte_pktmbuf_pkt_len(original) - 14);
		rte_pktmbuf_free(original);
	}
}

/* Fragments of several bursts are stored, but not longer than the timeout. */
RIG_TEST(fragments_wait_for_later_bursts)
{
	struct rte_mbuf *fragments[TUNNELLED_MOST];
	uint16_t n = tunnelled(rig, 77, 480, fragments, NULL);

	rig_make(rig, "IPTunnel", NULL, 0);
	for (uint16_t i = 0; i < n; i++) {
		rig_process(rig, &fragments[i], 1, SECOND * (1 + i));
		assert_int_equal(rig->out.n, i + 1 == n);
	}
	n = tunnelled(rig, 77, 480, fragments, NULL);
	for (uint16_t i = 0; i < n; i++) {
		rig_process(rig, &fragments[i], 1, SECOND * (40 + 40 * i));
		assert_int_equal(rig->out.n, 0);
	}
	assert_int_equal(rig_count(rig, "unassembled"), n - 1);
}

/* Fragments of incomplete datagrams are freed after the timeout, and counted. */
RIG_TEST(lost_fragments_time_out)
{
	enum { DATAGRAMS = 500, BURSTS = 10 };
	struct rte_mbuf *fragments[TUNNELLED_MOST];

	rig_make(rig, "IPTunnel", NULL, 0);
	for (uint16_t id = 0; id < DATAGRAMS; id++) {
		assert_int_equal(tunnelled(rig, id, 720, fragments, NULL), 2);
		rte_pktmbuf_free(fragments[1]);
		rig_process(rig, fragments, 1, SECOND);
	}
	assert_int_equal(rte_mempool_in_use_count(rig->pool), DATAGRAMS);
	rig_process(rig, NULL, 0, 31 * SECOND);
	assert_int_equal(rig_count(rig, "unassembled"), 0);
	for (int i = 0; i < BURSTS; i++)
		rig_process(rig, NULL, 0, 31 * SECOND + 1);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
	assert_int_equal(rig_count(rig, "unassembled"), DATAGRAMS);
}

/* The ECN marks of all fragments are combined, unless a sender does not support ECN. */
RIG_TEST(ecn_marks_of_fragments_are_combined)
{
	static const struct {
		uint8_t outer[3], expected; /* 0xff: freed; the inner mark is ECT(0) */
	} cases[] = {
		{{2, 2, 2}, 2}, {{2, 3, 2}, 3}, {{2, 2, 3}, 3}, {{3, 1, 2}, 3},
		{{3, 3, 3}, 3}, {{0, 0, 0}, 2}, {{0, 0, 2}, 2}, {{0, 3, 2}, 0xff},
	};

	for (size_t i = 0; i < 2 * RTE_DIM(cases); i++) {
		const uint8_t expected = cases[i / 2].expected;
		struct rte_mbuf *fragments[TUNNELLED_MOST];

		assert_int_equal(tunnelled(rig, 77, 480, fragments, NULL), 3);
		ipv4_of(fragments[0])[1].type_of_service = 2;
		header_checksum_set(&ipv4_of(fragments[0])[1]);
		for (int j = 0; j < 3; j++) {
			ipv4_of(fragments[j])->type_of_service = cases[i / 2].outer[j];
			header_checksum_set(ipv4_of(fragments[j]));
			if (i % 2)
				fragments[j] = in_two(rig, fragments[j], 200);
		}
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer_burst(rig, fragments, 3, 1);
		assert_int_equal(rig_count(rig, "congested"), expected == 0xff);
		if (expected == 0xff)
			continue;
		assert_header_checksum(rig_sent(rig));
		assert_int_equal(ipv4_of(rig_sent(rig))->type_of_service, expected);
	}
}

/* 60 fragments are reassembled; of 65 or more, all are freed and counted. */
RIG_TEST(more_than_64_fragments_are_freed)
{
	struct rte_mbuf *fragments[TUNNELLED_MOST];
	uint16_t n = tunnelled(rig, 77, 24, fragments, NULL);

	assert_int_equal(n, 60);
	rig_make(rig, "IPTunnel", NULL, 0);
	for (uint16_t i = 0; i < n; i++)
		rig_process(rig, &fragments[i], 1, SECOND);
	assert_int_equal(rig_count(rig, "decapsulated"), 1);
	n = tunnelled(rig, 78, 16, fragments, NULL);
	assert_int_equal(n, 90);
	for (uint16_t i = 0; i < 65; i++)
		rig_process(rig, &fragments[i], 1, SECOND);
	assert_int_equal(rig_count(rig, "unassembled"), 65);
	rte_pktmbuf_free_bulk(fragments + 65, n - 65);
}

/* Mutated fragments leave valid headers or are freed. */
RIG_TEST(mutated_fragments_leave_valid_headers)
{
	struct rte_mbuf *fragments[TUNNELLED_MOST];
	const uint16_t n = tunnelled(rig, 77, 720, fragments, NULL);

	RIG_MAKE(rig, "IPTunnel", {"pending_s", 1});
	offer_mutations_of(rig, fragments, n, assert_header_checksum);
	assert_true(rig_count(rig, "decapsulated") > 1000);
}

/* Overlapping, repeated, tagged and segmented fragments do no harm. */
RIG_TEST(hostile_fragments_do_no_harm)
{
	uint64_t random = 6;

	rig_make(rig, "IPTunnel", NULL, 0);
	for (int i = 0; i < 30000; i++) {
		uint8_t payload[64] = {0x45, 0, 0, 28, 0, 0, 0, 0, 64, IPPROTO_UDP};
		struct packet_spec packet_spec = {
			.source = TUNNEL_REMOTE,
			.destination = TUNNEL_LOCAL,
			.protocol = IPPROTO_IPIP,
			.id = random_below(&random, 3),
			.vlan = random_below(&random, 4) == 0,
			.payload = payload,
			.payload_length = random_below(&random, 5) * 8,
			.fragment = random_below(&random, 6),
			.from = NF_OUTSIDE,
		};
		struct rte_mbuf *packet;

		header_checksum_set((struct rte_ipv4_hdr *)payload);
		if (random_below(&random, 3))
			packet_spec.fragment |= RTE_IPV4_HDR_MF_FLAG;
		packet = packet_from_spec(rig, &packet_spec);
		if (rte_pktmbuf_pkt_len(packet) > 40 && random_below(&random, 2))
			packet = in_two(rig, packet, 38 + random_below(&random, 3));
		rig_process(rig, &packet, 1, rig->nf->now_us + random_below(&random, 1000));
		if (rig->out.n > 0)
			assert_int_equal(packet_parse(rig_sent(rig)).type, PACKET_IPV4);
	}
	assert_true(rig_count(rig, "decapsulated") > 100);
}
