#include "functions/fast_encrypt/chacha20.h"
#include "tests/esp_rig.h"
#include "tests/ipv6.h"

/*
 * RFC 7634, appendix A: an ESP packet with number 5 of the association with SPI 0x01020304, whose
 * content is a packet itself.
 */
static const uint8_t published[] = {
	0x45, 0x00, 0x00, 0x8c, 0x23, 0x45, 0x00, 0x00, 0x40, 0x32, 0xde, 0x5b, 0xcb, 0x00,
	0x71, 0x99, 0xcb, 0x00, 0x71, 0x05, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x05,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x24, 0x03, 0x94, 0x28, 0xb9, 0x7f,
	0x41, 0x7e, 0x3c, 0x13, 0x75, 0x3a, 0x4f, 0x05, 0x08, 0x7b, 0x67, 0xc3, 0x52, 0xe6,
	0xa7, 0xfa, 0xb1, 0xb9, 0x82, 0xd4, 0x66, 0xef, 0x40, 0x7a, 0xe5, 0xc6, 0x14, 0xee,
	0x80, 0x99, 0xd5, 0x28, 0x44, 0xeb, 0x61, 0xaa, 0x95, 0xdf, 0xab, 0x4c, 0x02, 0xf7,
	0x2a, 0xa7, 0x1e, 0x7c, 0x4c, 0x4f, 0x64, 0xc9, 0xbe, 0xfe, 0x2f, 0xac, 0xc6, 0x38,
	0xe8, 0xf3, 0xcb, 0xec, 0x16, 0x3f, 0xac, 0x46, 0x9b, 0x50, 0x27, 0x73, 0xf6, 0xfb,
	0x94, 0xe6, 0x64, 0xda, 0x91, 0x65, 0xb8, 0x28, 0x29, 0xf6, 0x41, 0xe0, 0x76, 0xaa,
	0xa8, 0x26, 0x6b, 0x7f, 0xb0, 0xf7, 0xb1, 0x1b, 0x36, 0x99, 0x07, 0xe1, 0xad, 0x43,
};

/* The headers of the packet in it; its data counts from 8 to 0x37. */
static const uint8_t content[] = {
	0x45, 0x00, 0x00, 0x54, 0xa6, 0xf2, 0x00, 0x00, 0x40, 0x01, 0xe7, 0x78,
	0xc6, 0x33, 0x64, 0x05, 0xc0, 0x00, 0x02, 0x05, 0x08, 0x00, 0x5b, 0x7a,
	0x3a, 0x08, 0x00, 0x00, 0x55, 0x3b, 0xec, 0x10, 0x00, 0x07, 0x36, 0x27,
};

/* The packet that RFC 7634 publishes is decrypted to the one that it names, by every driver. */
RIG_TEST(the_published_packet_is_decrypted)
{
	static const char *const drivers[] = {"crypto_aesni_mb", "crypto_chacha20_poly1305"};
	static const uint8_t ethernet[14] = {[12] = 0x08};

	for (unsigned int i = 0; i < RTE_DIM(drivers); i++) {
		const struct nf_setting settings[] = {
			{"key", 0,
			 "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
			 "a0a1a2a3"},
			{"spi", 0x01020304},
			{"decrypt", 1},
			{"driver", 0, drivers[i]}};
		struct rte_mbuf *packet = packet_of(rig, ethernet, sizeof(ethernet));
		const uint8_t *sent;
		char *behind = rte_pktmbuf_append(packet, sizeof(published));

		assert_non_null(behind);
		memcpy(behind, published, sizeof(published));
		rig_make(rig, "FastEncrypt", settings, RTE_DIM(settings));
		rig_offer(rig, packet, 1);
		assert_int_equal(rte_pktmbuf_data_len(rig_sent(rig)), 14 + 20 + 84);
		assert_int_equal(ipv4_of(rig_sent(rig))->next_proto_id, IPPROTO_IPIP);
		sent = rte_pktmbuf_mtod_offset(rig_sent(rig), const uint8_t *, 14 + 20);
		assert_memory_equal(sent, content, sizeof(content));
		for (uint8_t at = sizeof(content); at < 84; at++)
			assert_int_equal(sent[at], 8 + at - sizeof(content));
		assert_header_checksum(rig_sent(rig));
	}
}

/* Whatever is encrypted comes back, in both directions, with or without UDP. */
RIG_TEST(the_other_end_restores_every_byte)
{
	for (int in_udp = 0; in_udp < 2; in_udp++) {
		const struct nf_setting settings[] = {{"in_udp", in_udp}};
		struct esp_link *link =
			esp_link_make(rig, "FastEncrypt", "FastEncrypt", settings, 1);

		esp_check_round_trips(link);
	}
}

/* Initialization vectors count, so that none repeats, and those of the directions differ. */
RIG_TEST(vectors_count)
{
	uint64_t first = 0;

	rig_make(rig, "FastEncrypt", NULL, 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct rte_mbuf *sealed = esp_sealed(rig, esp_some_packet(rig));
		uint64_t iv;

		memcpy(&iv, rte_pktmbuf_mtod_offset(sealed, uint8_t *, 14 + 20 + 8), sizeof(iv));
		iv = rte_be_to_cpu_64(iv);
		first = i == 0 ? iv : first;
		assert_int_equal(iv, first + i);
		assert_int_equal(iv >> 63, 0);
		rte_pktmbuf_free(sealed);
	}
}

/* A changed, shortened or misdirected ESP packet is freed and counted. */
RIG_TEST(changed_packets_are_freed)
{
	struct esp_link *link = esp_link_make(rig, "FastEncrypt", "FastEncrypt", NULL, 0);

	esp_check_changes_are_noticed(link);
}

/* A packet that was received before is freed if there is a window. */
RIG_TEST(replays_are_freed)
{
	esp_check_replays(rig, "FastEncrypt", "FastEncrypt");
}

/* RFC 8439, section 2.3.2: the first bytes of a block of the key stream, and its last ones. */
TEST(the_published_block_is_made)
{
	static const uint8_t nonce[] = {0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0};
	static const uint8_t first[] = {0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15};
	static const uint8_t last[] = {0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e};
	uint8_t key[CHACHA20_KEY], block[CHACHA20_BLOCK];

	for (uint8_t i = 0; i < sizeof(key); i++)
		key[i] = i;
	chacha20_block(key, 1, nonce, block);
	assert_memory_equal(block, first, sizeof(first));
	assert_memory_equal(block + 48, ((uint8_t[]){0xb5, 0x12, 0x9c, 0xd1}), 4);
	assert_memory_equal(block + 56, last, sizeof(last));
}

static struct rte_mbuf *light_packet(struct rig *rig, uint16_t length, uint8_t protocol)
{
	static uint8_t payload[1400];
	const struct packet_spec packet_spec = {
		.source = RTE_IPV4(10, 0, 0, 1),
		.destination = RTE_IPV4(10, 0, 0, 2),
		.protocol = protocol,
		.id = length,
		.vlan = length % 3 == 0 ? 9 : 0,
		.payload = payload,
		.payload_length = length,
	};

	for (uint16_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + length);
	return packet_from_spec(rig, &packet_spec);
}

/*
 * The light mode changes the first blocks only, with right checksums, and is its own inverse; also
 * when a payload is in two segments.
 */
RIG_TEST(the_light_mode_is_its_own_inverse)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP};

	RIG_MAKE(rig, "FastEncrypt", {"blocks", 2});
	for (uint16_t length = 1; length < 400; length++) {
		const uint8_t protocol = protocols[length % 2];
		struct rte_mbuf *packet = light_packet(rig, length, protocol);
		uint8_t before[600], once[600], twice[600];
		const uint16_t size = packet_bytes(packet, before, sizeof(before));
		const uint16_t payload = size - length;

		if (length % 5 == 0)
			packet = in_two(rig, packet, payload + length / 2);
		rig_offer(rig, packet, 1);
		assert_int_equal(packet_bytes(rig_sent(rig), once, sizeof(once)), size);
		assert_true(length % 5 == 0 || checksums_right(rig_sent(rig)));
		assert_memory_not_equal(before + payload, once + payload, RTE_MIN(length, 128));
		if (length > 128)
			assert_memory_equal(before + payload + 128, once + payload + 128,
					    length - 128);
		rig_offer(rig, packet_of(rig, once, size), 1);
		packet_bytes(rig_sent(rig), twice, sizeof(twice));
		assert_memory_equal(before, twice, size);
	}
	assert_int_equal(rig_count(rig, "encrypted"), 2 * 399);
}

/* It passes IPv6, and what has no payload of UDP or TCP, and keeps a UDP checksum that is left out.
 */
RIG_TEST(the_light_mode_passes_the_rest)
{
	struct rte_mbuf *packet;
	const struct ipv6_spec ipv6 = {.payload_length = 64};
	uint8_t bytes[14 + 40 + 8 + 64];
	struct packet_spec fragment = {.payload_length = 64, .fragment = RTE_IPV4_HDR_MF_FLAG};

	RIG_MAKE(rig, "FastEncrypt", {"blocks", 1});
	rig_offer(rig, light_packet(rig, 0, IPPROTO_UDP), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, light_packet(rig, 64, IPPROTO_ICMP), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_from_spec(rig, &fragment), 1);
	assert_int_equal(rig->out.n, 1);
	packet = ipv6_packet(rig, &ipv6);
	packet_bytes(packet, bytes, sizeof(bytes));
	rig_offer(rig, packet, 1);
	assert_memory_equal(rte_pktmbuf_mtod(rig_sent(rig), uint8_t *), bytes, sizeof(bytes));
	assert_int_equal(rig_count(rig, "passed"), 3);
	assert_int_equal(rig_count(rig, "other"), 1);
	packet = light_packet(rig, 64, IPPROTO_UDP);
	((struct rte_udp_hdr *)(ipv4_of(packet) + 1))->dgram_cksum = 0;
	rig_offer(rig, packet, 1);
	assert_int_equal(((struct rte_udp_hdr *)(ipv4_of(rig_sent(rig)) + 1))->dgram_cksum, 0);
	offer_malformed(rig);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "malformed") > 50);
}

/* A key without its salt is refused, and so is a driver without ChaCha20. */
RIG_TEST(wrong_keys_and_drivers_are_refused)
{
	static const struct nf_setting wrong[] = {
		{"key", 0, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"},
		{"driver", 0, "crypto_openssl"},
	};

	esp_check_refused(rig, "FastEncrypt", wrong, RTE_DIM(wrong));
}

/* No packet makes either end crash or leak. */
RIG_TEST(survives_any_packet)
{
	struct esp_link *link = esp_link_make(rig, "FastEncrypt", "FastEncrypt", NULL, 0);

	esp_check_hostile(link);
}
