#include "functions/esp/association.h"
#include "tests/esp_rig.h"

#define ESP_AT (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))

static const struct nf_setting no_integrity[] = {{"hmac_key", 0, ""}};

/* Whatever is encrypted comes back, in both directions, with and without integrity or UDP. */
RIG_TEST(decrypt_restores_every_byte)
{
	const struct nf_setting settings[][2] = {
		{{"in_udp", 0}, {"seed", 1}},
		{{"in_udp", 1}, {"seed", 2}},
		{{"in_udp", 0}, {"hmac_key", 0, ""}},
	};

	for (unsigned int i = 0; i < RTE_DIM(settings); i++) {
		struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", settings[i], 2);

		esp_check_round_trips(link);
	}
}

static uint32_t word_at(struct rte_mbuf *packet, uint16_t at)
{
	rte_be32_t word;

	memcpy(&word, rte_pktmbuf_mtod_offset(packet, uint8_t *, at), sizeof(word));
	return rte_be_to_cpu_32(word);
}

/* The packet is ESP in transport mode: its headers say so, and numbers count from 1. */
RIG_TEST(packets_are_esp_in_transport_mode)
{
	RIG_MAKE(rig, "Encrypt", {"spi", 4321});
	for (uint32_t number = 1; number < 4; number++) {
		struct rte_mbuf *sealed = esp_sealed(rig, esp_some_packet(rig));
		const struct rte_ipv4_hdr *ip = ipv4_of(sealed);

		assert_header_checksum(sealed);
		assert_int_equal(ip->next_proto_id, IPPROTO_ESP);
		assert_int_equal(rte_be_to_cpu_32(ip->src_addr), RTE_IPV4(10, 0, 0, 1));
		assert_int_equal(word_at(sealed, ESP_AT), 4321);
		assert_int_equal(word_at(sealed, ESP_AT + 4), number);
		/* IV, 1,008 bytes padded to a multiple of 16 with 2 more, integrity check value */
		assert_int_equal(rte_be_to_cpu_16(ip->total_length), 20 + 8 + 16 + 1024 + 16);
		assert_int_equal(rte_pktmbuf_data_len(sealed), 14 + 20 + 8 + 16 + 1024 + 16);
		rte_pktmbuf_free(sealed);
	}
}

/* In UDP, packets are from and to port 4500, without a checksum (RFC 3948, section 2.1). */
RIG_TEST(esp_can_be_in_udp)
{
	struct rte_mbuf *sealed;
	const struct rte_udp_hdr *udp;

	RIG_MAKE(rig, "Encrypt", {"in_udp", 1});
	sealed = esp_sealed(rig, esp_some_packet(rig));
	udp = (const struct rte_udp_hdr *)(ipv4_of(sealed) + 1);
	assert_int_equal(packet_parse(sealed).type, PACKET_IPV4);
	assert_int_equal(ipv4_of(sealed)->next_proto_id, IPPROTO_UDP);
	assert_int_equal(rte_be_to_cpu_16(udp->src_port), 4500);
	assert_int_equal(rte_be_to_cpu_16(udp->dst_port), 4500);
	assert_int_equal(rte_be_to_cpu_16(udp->dgram_len), 8 + 8 + 16 + 1024 + 16);
	assert_int_equal(udp->dgram_cksum, 0);
	assert_int_equal(word_at(sealed, ESP_AT + 8), 256);
	rte_pktmbuf_free(sealed);
}

static void sealed_bytes(struct rig *rig, uint8_t *bytes, uint16_t room)
{
	struct rte_mbuf *sealed = esp_sealed(rig, esp_some_packet(rig));

	memset(bytes, 0, room);
	packet_bytes(sealed, bytes, room);
	rte_pktmbuf_free(sealed);
}

/* The same seed gives the same bytes by every driver; another one other initialization vectors. */
RIG_TEST(bytes_depend_on_the_seed_alone)
{
	static const char *const drivers[] = {
		"",
#ifdef RTE_ARCH_X86
		"crypto_aesni_mb",
#endif
		"crypto_openssl",
	};
	uint8_t first[3][2000], bytes[2000];

	for (unsigned int i = 0; i < RTE_DIM(drivers); i++) {
		const struct nf_setting settings[] = {{"driver", 0, drivers[i]}, {"seed", 7}};

		rig_make(rig, "Encrypt", settings, 2);
		for (int packet = 0; packet < 3; packet++) {
			sealed_bytes(rig, i == 0 ? first[packet] : bytes, 2000);
			if (i > 0)
				assert_memory_equal(bytes, first[packet], 2000);
		}
	}
	assert_memory_not_equal(first[0] + ESP_AT + 8, first[1] + ESP_AT + 8, 16);
	rig_make(rig, "Encrypt", &(struct nf_setting){"seed", 8}, 1);
	sealed_bytes(rig, bytes, 2000);
	assert_memory_not_equal(first[0] + ESP_AT + 8, bytes + ESP_AT + 8, 16);
}

/* Both directions have initialization vectors of their own, since they share the key. */
RIG_TEST(directions_share_no_vectors)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);
	struct rte_mbuf *there = esp_sealed(rig, esp_some_packet(rig));
	struct rte_mbuf *back = esp_some_packet(rig);

	metadata_begin(back, NF_OUTSIDE, 0);
	assert_true(esp_far_passes(link, back));
	back = link->out.packets[0];
	assert_int_equal(word_at(back, ESP_AT), word_at(there, ESP_AT) + 1);
	assert_memory_not_equal(rte_pktmbuf_mtod_offset(back, uint8_t *, ESP_AT + 8),
				rte_pktmbuf_mtod_offset(there, uint8_t *, ESP_AT + 8), 16);
	/* a packet that is sent back to its sender is not taken for one of the other end */
	metadata_begin(there, NF_OUTSIDE, 0);
	rig_frees(rig, there, 1);
	assert_int_equal(rig_count(rig, "foreign"), 1);
}

/* What does not fit a buffer is freed and counted; what just fits is sent. */
RIG_TEST(packets_that_outgrow_a_buffer_are_freed)
{
	/* headers of Ethernet, IPv4 and ESP, IV and integrity check value; then a multiple of 16 */
	const uint16_t room = (RTE_MBUF_DEFAULT_DATAROOM - 14 - 20 - 8 - 16 - 16) / 16 * 16;
	struct packet_spec packet_spec = {.payload_length = room - 2 - 8};

	rig_make(rig, "Encrypt", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig->out.n, 1);
	packet_spec.payload_length++;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "too_long"), 1);
}

/* Without buffers packets are freed and counted. */
RIG_TEST(without_buffers_packets_are_freed)
{
	struct rte_mbuf *taken[RIG_PACKETS];

	rig_make(rig, "Encrypt", NULL, 0);
	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS), 0);
	rig_frees(rig, esp_some_packet(rig), 1);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS);
	rig->nf->spare = NULL;
	rig_frees(rig, esp_some_packet(rig), 1);
	assert_int_equal(rig_count(rig, "no_buffer"), 2);
}

/* Nothing leaves in the clear: fragments and what is not IPv4 are freed, unless it is to pass. */
RIG_TEST(nothing_leaves_in_the_clear)
{
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06}, ipv6[60] = {[12] = 0x86, [13] = 0xdd};
	struct packet_spec first = {.payload_length = 64, .fragment = RTE_IPV4_HDR_MF_FLAG};
	struct packet_spec later = {.payload_length = 64, .fragment = 100};

	rig_make(rig, "Encrypt", NULL, 0);
	rig_frees(rig, packet_from_spec(rig, &first), 1);
	rig_frees(rig, packet_from_spec(rig, &later), 1);
	assert_int_equal(rig_count(rig, "fragments"), 2);
	rig_frees(rig, packet_of(rig, arp, sizeof(arp)), 1);
	rig_frees(rig, packet_of(rig, ipv6, sizeof(ipv6)), 1);
	assert_int_equal(rig_count(rig, "unknown"), 2);
	rig_check_unknown(rig, "Encrypt");
	rig_check_unknown(rig, "Decrypt");
	rig_check_unknown(rig, "FastEncrypt");
}

/* A burst is encrypted at once and keeps its order, whatever is between its packets. */
RIG_TEST(bursts_keep_their_order)
{
	struct rte_mbuf *burst[NF_BURST];

	rig_make(rig, "Encrypt", NULL, 0);
	for (uint16_t i = 0; i < NF_BURST; i++) {
		struct packet_spec packet_spec = {.id = i, .payload_length = 40 * (i % 7)};

		packet_spec.fragment = i % 5 == 4 ? RTE_IPV4_HDR_MF_FLAG : 0;
		burst[i] = packet_from_spec(rig, &packet_spec);
		if (i % 3 == 2)
			burst[i] = in_two(rig, burst[i], 40);
	}
	rig_offer_burst(rig, burst, NF_BURST, 1);
	assert_counts(rig, {"encrypted", 26}, {"fragments", 6});
	for (uint32_t i = 0, id = 0; i < rig->out.n; i++, id++) {
		id += id % 5 == 4;
		assert_int_equal(rte_be_to_cpu_16(ipv4_of(rig->out.packets[i])->packet_id), id);
	}
}

/* The sender's packet stays unchanged: traffic sends the same payloads again. */
RIG_TEST(received_packets_stay_unchanged)
{
	rig_make(rig, "Encrypt", NULL, 0);
	esp_check_unchanged(rig);
}

/* Keys that are not hexadecimal or not of their length are refused, and so are unknown drivers. */
RIG_TEST(wrong_keys_and_drivers_are_refused)
{
	static const struct nf_setting wrong[] = {
		{"key", 0, ""},
		{"key", 0, "000102030405060708090a0b0c0d0e0"},
		{"key", 0, "000102030405060708090a0b0c0d0e0f0"},
		{"key", 0, "000102030405060708090a0b0c0d0e0x"},
		{"hmac_key", 0, "00"},
		{"driver", 0, "crypto_none"},
		{"driver", 0, "crypto_chacha20_poly1305"},
		{"spi", 255},
	};

	esp_check_refused(rig, "Encrypt", wrong, RTE_DIM(wrong));
}

/* With a window the last sequence number is the last one sent (RFC 4303, section 3.3.3). */
RIG_TEST(sequence_numbers_repeat_only_without_a_window)
{
	struct association association = association_of(256, 1, 0, false);
	uint32_t sequence;

	association.sequence = UINT32_MAX - 1;
	assert_true(association_next_number(&association, 64, &sequence));
	assert_int_equal(sequence, UINT32_MAX);
	assert_false(association_next_number(&association, 64, &sequence));
	assert_true(association_next_number(&association, 0, &sequence));
	assert_int_equal(sequence, 0);
}

/* Creating and destroying many times takes no devices and no memory away. */
RIG_TEST(instances_come_and_go)
{
	for (int i = 0; i < 200; i++)
		rig_make(rig, "Encrypt", i % 2 ? no_integrity : NULL, i % 2);
}

/* No packet makes either end crash or leak. */
RIG_TEST(survives_any_packet)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);

	esp_check_hostile(link);
}
