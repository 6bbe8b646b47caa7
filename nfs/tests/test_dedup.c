#include "core/random.h"
#include "functions/dedup/siphash.h"
#include "tests/dedup_rig.h"

#define HEADERS (14 + 20 + 8)
#define PAYLOAD 1000

/* The value that the authors of SipHash-2-4 publish for 15 bytes. */
RIG_TEST(hashes_are_siphash)
{
	const struct siphash_key key = {{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull}};
	uint8_t bytes[15];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	assert_true(siphash(&key, bytes, sizeof(bytes)) == 0xa129ca6149be45e5ull);
}

/* A payload sent before becomes a header and one region, and comes back. */
RIG_TEST(repeated_payloads_become_references)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD];
	uint64_t random = 1;

	random_bytes(&random, payload, PAYLOAD, 256);
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD)),
			 HEADERS + PAYLOAD);
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD)),
			 HEADERS + 16 + 14);
	assert_int_equal(dedup_crosses(link, dedup_segment(rig, payload, PAYLOAD, 5)),
			 HEADERS + 12 + 16 + 14);
	assert_counts(rig, {"encoded", 2}, {"unmatched", 1}, {"regions", 2},
		      {"bytes_in", 3 * PAYLOAD}, {"bytes_out", PAYLOAD + 2 * (16 + 14)});
	assert_int_equal(nf_count(link->far, "restored"), 2);
	assert_int_equal(nf_count(link->far, "whole"), 1);
}

/* Regions are found wherever they are, and extended to the last equal byte. */
RIG_TEST(regions_are_found_anywhere)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t first[PAYLOAD], second[PAYLOAD];
	uint64_t random = 2;

	random_bytes(&random, first, PAYLOAD, 256);
	random_bytes(&random, second, PAYLOAD, 256);
	dedup_crosses(link, dedup_packet(rig, first, PAYLOAD));
	memcpy(second + 123, first + 400, 500);
	second[122] = (uint8_t)~first[399];
	second[623] = (uint8_t)~first[900];
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, second, PAYLOAD)),
			 HEADERS + 16 + 14 + PAYLOAD - 500);
	/* two regions of two payloads */
	memcpy(first, second + 600, 300);
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, first, PAYLOAD)),
			 HEADERS + 16 + 2 * 14);
}

/* A mixture of pieces that occurred before and new ones. */
static uint16_t mixture(uint64_t *random, uint8_t *payload, uint16_t room)
{
	uint16_t length = 0;

	while (length < room && random_below(random, 12) > 0) {
		uint64_t piece = random_below(random, 40);
		const uint16_t size =
			RTE_MIN(1 + random_below(random, 400), (uint32_t)(room - length));

		if (random_below(random, 3) == 0)
			piece = random_next(random);
		random_bytes(&piece, payload + length, size, random_below(random, 9) ? 256 : 1);
		length += size;
	}
	return length;
}

static struct rte_mbuf *any_packet(struct rig *rig, uint64_t *random)
{
	static uint32_t sequence;
	uint8_t payload[1400];
	const uint16_t length = mixture(random, payload, sizeof(payload));
	struct packet_spec packet_spec = {
		.source = random_below(random, 3),
		.destination = random_below(random, 3),
		.protocol = random_below(random, 2) ? IPPROTO_TCP : IPPROTO_UDP,
		.vlan = random_below(random, 2) ? 7 : 0,
		.payload = payload,
		.payload_length = length,
	};
	struct rte_mbuf *packet = packet_from_spec(rig, &packet_spec);

	if (packet_spec.protocol == IPPROTO_TCP && random_below(random, 10)) {
		rte_pktmbuf_free(packet);
		sequence += length;
		packet = dedup_segment(rig, payload, length, sequence);
	}
	return random_below(random, 4) || rte_pktmbuf_data_len(packet) < 80
		       ? packet
		       : in_two(rig, packet, 60 + random_below(random, 20));
}

/* Thousands of packets of any mixture come back, with a cache that is replaced many times. */
RIG_TEST(any_mixture_comes_back)
{
	struct dedup_link *link = dedup_link_make(rig, SETTINGS({"packets", 64}, {"depth", 5}));
	uint64_t random = 3;

	for (int i = 0; i < 8000; i++)
		dedup_crosses(link, any_packet(rig, &random));
	assert_true(rig_count(rig, "encoded") > 2000);
	assert_true(rig_count(rig, "unmatched") > 300);
	assert_true(rig_count(rig, "retransmitted") > 300);
	assert_true(rig_count(rig, "regions") > rig_count(rig, "encoded"));
	assert_true(rig_count(rig, "bytes_out") < rig_count(rig, "bytes_in") * 3 / 4);
	assert_int_equal(nf_count(link->far, "restored"), rig_count(rig, "encoded"));
	assert_int_equal(nf_count(link->far, "lost") + nf_count(link->far, "damaged"), 0);
}

/* From outside, the far end encodes and the near end restores, with caches of their own. */
RIG_TEST(the_way_back_has_its_own_caches)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD];
	uint64_t random = 4;

	random_bytes(&random, payload, PAYLOAD, 256);
	dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD));
	for (int i = 0; i < 2; i++) {
		struct rte_mbuf *packet = dedup_packet(rig, payload, PAYLOAD);

		metadata_begin(packet, NF_OUTSIDE, 0);
		packet = dedup_restored(link, packet);
		link->out.n = 0;
		assert_int_equal(rte_pktmbuf_pkt_len(packet), HEADERS + (i ? 16 + 14 : PAYLOAD));
		rig_offer(rig, packet, 1);
		assert_int_equal(rte_pktmbuf_pkt_len(rig_sent(rig)), HEADERS + PAYLOAD);
		assert_int_equal(packet_from(rig_sent(rig)), NF_OUTSIDE);
	}
	assert_int_equal(rig_count(rig, "restored"), 1);
}

/* A payload that leaves the cache is sent whole again. */
RIG_TEST(the_cache_is_bounded)
{
	for (int others = 63; others <= 64; others++) {
		struct dedup_link *link = dedup_link_make(rig, SETTINGS({"packets", 64}));
		uint8_t payload[PAYLOAD], other[PAYLOAD];
		uint64_t random = 5;

		random_bytes(&random, payload, PAYLOAD, 256);
		dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD));
		for (int i = 0; i < others; i++) {
			random_bytes(&random, other, PAYLOAD, 256);
			dedup_crosses(link, dedup_packet(rig, other, PAYLOAD));
		}
		dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD));
		assert_int_equal(rig_count(rig, "encoded"), others == 63);
	}
}

/* Payloads that begin like encoded ones are encoded themselves, and come back. */
RIG_TEST(look_alikes_are_escaped)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD] = {'D', 'D', 'U', 'P'};
	struct rte_mbuf *packet;

	for (uint16_t length = 4; length < 200; length++)
		assert_true(dedup_crosses(link, dedup_packet(rig, payload, length)) <=
			    HEADERS + length + 16);
	assert_int_equal(rig_count(rig, "encoded"), 196);
	packet = dedup_packet(rig, payload, 100);
	((struct rte_udp_hdr *)(ipv4_of(packet) + 1))->dgram_len = RTE_BE16(50);
	assert_null(dedup_encoded(link, packet));
	assert_int_equal(rig_count(rig, "unencodable"), 1);
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, payload, 3)), HEADERS + 3);
}

/* Checksums come back as they were: none, wrong ones, and those of translated packets. */
RIG_TEST(checksums_come_back)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD];
	uint64_t random = 6;
	struct rte_mbuf *packet;
	struct rte_udp_hdr *udp;

	random_bytes(&random, payload, PAYLOAD, 256);
	for (uint32_t checksum = 0; checksum <= UINT16_MAX; checksum += 257) {
		packet = dedup_packet(rig, payload, PAYLOAD);
		((struct rte_udp_hdr *)(ipv4_of(packet) + 1))->dgram_cksum = checksum;
		dedup_crosses(link, packet);
		packet = dedup_segment(rig, payload, PAYLOAD - 1, 5000 * checksum);
		((struct rte_tcp_hdr *)(ipv4_of(packet) + 1))->cksum = checksum;
		dedup_crosses(link, packet);
	}
	packet = dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD));
	assert_int_equal(rte_pktmbuf_pkt_len(packet), HEADERS + 16 + 14);
	udp = (struct rte_udp_hdr *)(ipv4_of(packet) + 1);
	udp->dgram_cksum = checksum_changed(udp->dgram_cksum, udp->src_port, RTE_BE16(77));
	udp->src_port = RTE_BE16(77);
	assert_true(checksums_right(dedup_restored(link, packet)));
}

/* Fragments, other protocols, and payloads that are short or too long for the cache pass. */
RIG_TEST(other_packets_pass)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	struct packet_spec others[] = {
		{.payload_length = 100, .fragment = RTE_IPV4_HDR_MF_FLAG},
		{.payload_length = 100, .fragment = 20},
		{.payload_length = 100, .protocol = IPPROTO_ICMP},
		{.payload_length = 100, .protocol = IPPROTO_GRE},
		{.payload_length = 63},
		{.payload_length = 0},
	};
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};

	for (unsigned int i = 0; i < 2 * RTE_DIM(others); i++)
		assert_non_null(dedup_restored(
			link, dedup_encoded(link, packet_from_spec(rig, &others[i / 2]))));
	assert_non_null(dedup_restored(link, dedup_encoded(link, packet_of(rig, arp, 60))));
	assert_int_equal(rig_count(rig, "passed"), 13);
	assert_int_equal(nf_count(link->far, "passed"), 13);
}

/* Without a buffer packets are sent whole; those that must be encoded are freed. */
RIG_TEST(without_buffers_packets_are_sent_whole)
{
	struct dedup_link *link = dedup_link_make(rig, NULL, 0);
	uint8_t payload[PAYLOAD] = {1};

	dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD));
	rig->nf->spare = NULL;
	assert_int_equal(dedup_crosses(link, dedup_packet(rig, payload, PAYLOAD)),
			 HEADERS + PAYLOAD);
	assert_int_equal(rig_count(rig, "unbuffered"), 1);
	memcpy(payload, "DDUP", 4);
	assert_null(dedup_encoded(link, dedup_packet(rig, payload, PAYLOAD)));
	assert_int_equal(rig_count(rig, "unbuffered"), 2);
}

/* The sender's packet stays unchanged: traffic sends the same payloads again. */
RIG_TEST(received_packets_stay_unchanged)
{
	uint8_t payload[PAYLOAD] = {1}, before[2000], after[2000];

	rig_make(rig, "Dedup", NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct rte_mbuf *packet = dedup_packet(rig, payload, PAYLOAD);
		const uint16_t length = packet_bytes(packet, before, sizeof(before));

		rte_mbuf_refcnt_update(packet, 1);
		rig_offer(rig, packet, 1);
		nf_out_free(&rig->out);
		assert_int_equal(packet_bytes(packet, after, sizeof(after)), length);
		assert_memory_equal(after, before, length);
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(rig_count(rig, "encoded"), 1);
}
