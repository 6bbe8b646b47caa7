#include "core/random.h"
#include "tests/dedup_rig.h"

#define PAYLOAD 1000

/* A payload of pieces that repeat between packets. */
static struct rte_mbuf *repetitive(struct rig *rig, uint64_t *random, uint8_t payload[PAYLOAD])
{
	for (uint16_t at = 0; at < PAYLOAD; at += 200) {
		uint64_t piece = random_below(random, 30);

		random_bytes(&piece, payload + at, 200, 256);
	}
	return dedup_packet(rig, payload, PAYLOAD);
}

static void check_payload(struct rte_mbuf *packet, const uint8_t payload[PAYLOAD])
{
	assert_true(checksums_right(packet));
	assert_memory_equal(rte_pktmbuf_mtod_offset(packet, uint8_t *, 14 + 20 + 8), payload,
			    PAYLOAD);
}

/* Whatever is lost on the link, no packet is restored to wrong bytes, and losses end. */
RIG_TEST(losses_cost_packets_never_bytes)
{
	struct dedup_link *link = dedup_link_make(rig, SETTINGS({"packets", 256}));
	uint64_t random = 1, passed = 0, lost;
	uint8_t payload[PAYLOAD];

	for (int i = 0; i < 6000; i++) {
		struct rte_mbuf *packet = dedup_encoded(link, repetitive(rig, &random, payload));

		if (i < 4000 && random_below(&random, 50) == 0) {
			rte_pktmbuf_free(packet);
			continue;
		}
		packet = dedup_restored(link, packet);
		passed += packet != NULL;
		if (packet)
			check_payload(packet, payload);
		if (i == 5000)
			lost = nf_count(link->far, "lost");
	}
	assert_true(nf_count(link->far, "lost") > 10);
	assert_int_equal(nf_count(link->far, "lost"), lost);
	assert_int_equal(nf_count(link->far, "damaged"), 0);
	assert_true(passed > 3000);
}

/* Of packets with the same payload, at most `depth` are lost with the first one. */
RIG_TEST(a_loss_costs_at_most_the_depth)
{
	for (int depth = 1; depth < 20; depth += 6) {
		struct dedup_link *link = dedup_link_make(rig, SETTINGS({"depth", depth}));
		uint8_t payload[PAYLOAD];
		uint64_t random = 2;

		random_bytes(&random, payload, PAYLOAD, 256);
		rte_pktmbuf_free(dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD)));
		for (int i = 0; i < 100; i++) {
			struct rte_mbuf *packet = dedup_restored(
				link, dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD)));

			assert_int_equal(packet != NULL, i >= depth);
			if (packet)
				check_payload(packet, payload);
		}
		assert_int_equal(nf_count(link->far, "lost"), depth);
	}
}

/* Packets that overtake others are restored, or freed if they refer to what comes behind them. */
RIG_TEST(reordering_costs_packets_never_bytes)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payloads[2][PAYLOAD];
	uint64_t random = 3;

	for (int pair = 0; pair < 2000; pair++) {
		const bool swapped = random_below(&random, 50) == 0;
		struct rte_mbuf *packets[2];

		for (int i = 0; i < 2; i++)
			packets[i] = dedup_encoded(link, repetitive(rig, &random, payloads[i]));
		for (int i = 0; i < 2; i++) {
			struct rte_mbuf *packet = dedup_restored(link, packets[i ^ swapped]);

			if (packet)
				check_payload(packet, payloads[i ^ swapped]);
		}
	}
	assert_int_equal(nf_count(link->far, "damaged"), 0);
	assert_in_range(nf_count(link->far, "lost"), 10, 1500);
}

/* A TCP segment sent again is sent whole, so that its receiver gets it, and others after it. */
RIG_TEST(segments_sent_again_are_sent_whole)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD];
	uint64_t random = 4;

	random_bytes(&random, payload, PAYLOAD, 256);
	rte_pktmbuf_free(dedup_encoded(link, dedup_segment(rig, payload, PAYLOAD, 7000)));
	assert_null(dedup_restored(
		link, dedup_encoded(link, dedup_segment(rig, payload, PAYLOAD, 9000))));
	assert_int_equal(dedup_crosses(link, dedup_segment(rig, payload, PAYLOAD, 7000)),
			 14 + 20 + 20 + PAYLOAD);
	assert_int_equal(rig_count(rig, "retransmitted"), 1);
	/* a part of it is, too; other bytes of the stream are not */
	assert_int_equal(
		dedup_crosses(link, dedup_segment(rig, payload + 500, PAYLOAD - 500, 7500)),
		14 + 20 + 20 + PAYLOAD - 500);
	assert_int_equal(rig_count(rig, "retransmitted"), 2);
	assert_int_equal(dedup_crosses(link, dedup_segment(rig, payload, PAYLOAD, 20000)),
			 14 + 20 + 20 + 16 + 14);
}

/* Any changed byte of an encoded payload is noticed. */
RIG_TEST(changed_bytes_are_noticed)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD], bytes[2000];
	uint64_t random = 5;
	struct rte_mbuf *packet;
	uint16_t length;

	random_bytes(&random, payload, PAYLOAD, 256);
	dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD));
	random_bytes(&random, payload + 400, 100, 256);
	packet = dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD));
	length = packet_bytes(packet, bytes, sizeof(bytes));
	assert_int_equal(length, 14 + 20 + 8 + 16 + 2 * 14 + 100);
	for (uint16_t at = 14 + 20 + 8 + 4; at < length; at++) {
		bytes[at] ^= 1 << at % 8;
		assert_null(dedup_restored(link, packet_of(rig, bytes, length)));
		bytes[at] ^= 1 << at % 8;
	}
	assert_int_equal(nf_count(link->far, "lost"), 2 * 8); /* hashes of sources */
	assert_int_equal(nf_count(link->far, "damaged"), length - 14 - 20 - 8 - 4 - 16);
	packet = dedup_restored(link, packet);
	assert_non_null(packet);
	check_payload(packet, payload);
}

/* Ends with other seeds restore nothing, rather than wrong bytes. */
RIG_TEST(other_seeds_restore_nothing)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD];
	uint64_t random = 7;

	random_bytes(&random, payload, PAYLOAD, 256);
	rig_make(rig, "Dedup", &(struct nf_setting){"seed", 2}, 1);
	dedup_restored(link, dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD)));
	assert_null(dedup_restored(link, dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD))));
	assert_int_equal(nf_count(link->far, "lost"), 1);
}

static void is_valid(struct rte_mbuf *sent)
{
	assert_int_not_equal(packet_parse(sent).type, PACKET_MALFORMED);
}

/* No packet makes either end crash or leak. */
RIG_TEST(survives_any_packet)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1)};
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	struct rte_mbuf *packets[20];
	struct nf *near = rig->nf;
	uint8_t payload[PAYLOAD];
	uint64_t random = 6;

	offer_malformed(rig);
	assert_true(rig_count(rig, "malformed") > 0);
	offer_hostile(rig, addresses, 1, is_valid);
	for (int i = 0; i < 20; i++) {
		struct rte_mbuf *packet;

		packets[i] = dedup_encoded(link, repetitive(rig, &random, payload));
		packet = rte_pktmbuf_copy(packets[i], rig->pool, 0, UINT32_MAX);
		metadata_inherit(packet, packets[i]);
		dedup_restored(link, packet);
	}
	nf_out_free(&rig->out);
	rig->nf = link->far; /* the rig's helpers offer to its function */
	offer_malformed(rig);
	offer_hostile(rig, addresses, 1, is_valid);
	offer_mutations_of(rig, packets, 20, is_valid);
	nf_out_free(&rig->out);
	rig->nf = near;
	assert_true(nf_count(link->far, "restored") > 100);
	assert_true(nf_count(link->far, "damaged") > 100);
	assert_true(nf_count(link->far, "lost") > 10);
}
