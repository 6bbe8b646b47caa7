#include "tests/esp_rig.h"

/*
 * RFC 3602, section 4, case 5: a ping from 192.168.123.3 to 192.168.123.100, encrypted without
 * integrity under the key 90d382b410eeba7ad938c46cec1a82bf.
 */
static const uint8_t published[] = {
	0x45, 0x00, 0x00, 0x7c, 0x08, 0xf2, 0x00, 0x00, 0x40, 0x32, 0xf9, 0xa5, 0xc0, 0xa8,
	0x7b, 0x03, 0xc0, 0xa8, 0x7b, 0x64, 0x00, 0x00, 0x10, 0xe1, 0x00, 0x00, 0x00, 0x01,
	0xe9, 0x6e, 0x8c, 0x08, 0xab, 0x46, 0x57, 0x63, 0xfd, 0x09, 0x8d, 0x45, 0xdd, 0x3f,
	0xf8, 0x93, 0xf6, 0x63, 0xc2, 0x5d, 0x32, 0x5c, 0x18, 0xc6, 0xa9, 0x45, 0x3e, 0x19,
	0x4e, 0x12, 0x08, 0x49, 0xa4, 0x87, 0x0b, 0x66, 0xcc, 0x6b, 0x99, 0x65, 0x33, 0x00,
	0x13, 0xb4, 0x89, 0x8d, 0xc8, 0x56, 0xa4, 0x69, 0x9e, 0x52, 0x3a, 0x55, 0xdb, 0x08,
	0x0b, 0x59, 0xec, 0x3a, 0x8e, 0x4b, 0x7e, 0x52, 0x77, 0x5b, 0x07, 0xd1, 0xdb, 0x34,
	0xed, 0x9c, 0x53, 0x8a, 0xb5, 0x0c, 0x55, 0x1b, 0x87, 0x4a, 0xa2, 0x69, 0xad, 0xd0,
	0x47, 0xad, 0x2d, 0x59, 0x13, 0xac, 0x19, 0xb7, 0xcf, 0xba, 0xd4, 0xa6,
};

/* The ping's IPv4 header, its ICMP header and time; the rest of its data counts from 8 to 0x37. */
static const uint8_t ping[] = {
	0x45, 0x00, 0x00, 0x54, 0x08, 0xf2, 0x00, 0x00, 0x40, 0x01, 0xf9, 0xfe,
	0xc0, 0xa8, 0x7b, 0x03, 0xc0, 0xa8, 0x7b, 0x64, 0x08, 0x00, 0x0e, 0xbd,
	0xa7, 0x0a, 0x00, 0x00, 0x8e, 0x9c, 0x08, 0x3d, 0xb9, 0x5b, 0x07, 0x00,
};

static const struct nf_setting published_settings[] = {
	{"key", 0, "90d382b410eeba7ad938c46cec1a82bf"}, {"hmac_key", 0, ""}, {"spi", 4321}};

static struct rte_mbuf *behind_ethernet(struct rig *rig, const uint8_t *bytes, uint16_t length)
{
	static const uint8_t ethernet[14] = {[12] = 0x08};
	struct rte_mbuf *packet = packet_of(rig, ethernet, sizeof(ethernet));
	char *behind = rte_pktmbuf_append(packet, length);

	assert_non_null(behind);
	memcpy(behind, bytes, length);
	return packet;
}

/* The packet that RFC 3602 publishes is decrypted to the one that it names. */
RIG_TEST(the_published_packet_is_decrypted)
{
	static const char *const drivers[] = {
#ifdef RTE_ARCH_X86
		"crypto_aesni_mb",
#endif
		"crypto_openssl",
	};

	for (unsigned int i = 0; i < RTE_DIM(drivers); i++) {
		struct nf_setting settings[RTE_DIM(published_settings) + 1];
		const uint8_t *sent;

		memcpy(settings, published_settings, sizeof(published_settings));
		settings[RTE_DIM(published_settings)] =
			(struct nf_setting){"driver", 0, drivers[i]};
		rig_make(rig, "Decrypt", settings, RTE_DIM(settings));
		rig_offer(rig, behind_ethernet(rig, published, sizeof(published)), 1);
		assert_int_equal(rte_pktmbuf_data_len(rig_sent(rig)), 14 + 84);
		sent = rte_pktmbuf_mtod_offset(rig_sent(rig), const uint8_t *, 14);
		assert_memory_equal(sent, ping, sizeof(ping));
		for (uint8_t at = sizeof(ping); at < 84; at++)
			assert_int_equal(sent[at], 8 + at - sizeof(ping));
		assert_header_checksum(rig_sent(rig));
	}
}

/* A changed, shortened or misdirected ESP packet is freed and counted. */
RIG_TEST(changed_packets_are_freed)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);

	esp_check_changes_are_noticed(link);
}

/* Without integrity, a wrong key shows in nearly all paddings. */
RIG_TEST(wrong_keys_garble_the_padding)
{
	const struct nf_setting settings[] = {{"hmac_key", 0, ""}};
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", settings, 1);
	const struct nf_setting others[] = {{"key", 0, "ffffffffffffffffffffffffffffffff"},
					    settings[0]};

	rig_make(rig, "Encrypt", others, 2);
	for (int i = 0; i < 500; i++)
		esp_far_passes(link, esp_sealed(rig, esp_some_packet(rig)));
	assert_in_range(nf_count(link->far, "garbled"), 480, 500);
}

/* With integrity, packets under another key of either kind are unauthentic or garbled. */
RIG_TEST(wrong_keys_are_noticed)
{
	const struct nf_setting others[] = {{"hmac_key", 0,
					     "ffffffffffffffffffffffffffffffff"
					     "ffffffffffffffffffffffffffffffff"}};
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);

	rig_make(rig, "Encrypt", others, 1);
	assert_false(esp_far_passes(link, esp_sealed(rig, esp_some_packet(rig))));
	assert_int_equal(nf_count(link->far, "unauthentic"), 1);
}

/* A packet that was received before is freed if there is a window. */
RIG_TEST(replays_are_freed)
{
	esp_check_replays(rig, "Encrypt", "Decrypt");
}

/* Of two copies in one burst, one is freed. */
RIG_TEST(replays_in_one_burst_are_freed)
{
	const struct nf_setting settings[] = {{"replay_window", 64}};
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", settings, 1);
	struct rte_mbuf *burst[2] = {esp_sealed(rig, esp_some_packet(rig))};

	burst[1] = rte_pktmbuf_copy(burst[0], rig->pool, 0, UINT32_MAX);
	metadata_inherit(burst[1], burst[0]);
	nf_process(link->far, burst, 2, &link->out);
	assert_int_equal(link->out.n, 1);
	assert_int_equal(nf_count(link->far, "replayed"), 1);
}

/* What is not ESP of the link is freed: other protocols, SPIs and fragments. */
RIG_TEST(foreign_packets_are_freed)
{
	struct packet_spec fragment = {.protocol = IPPROTO_ESP, .fragment = 10};

	rig_make(rig, "Decrypt", NULL, 0);
	rig_offer(rig, esp_some_packet(rig), 1);
	rig_offer(rig, behind_ethernet(rig, published, sizeof(published)), 1);
	assert_int_equal(rig_count(rig, "foreign"), 2);
	rig_offer(rig, packet_from_spec(rig, &fragment), 1);
	assert_counts(rig, {"fragments", 1}, {"decrypted", 0});
}

/* In UDP, packets to another port are foreign, and so are messages of IKE. */
RIG_TEST(udp_to_other_ports_is_foreign)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", SETTINGS({"in_udp", 1}));
	struct rte_mbuf *sealed = esp_sealed(rig, esp_some_packet(rig));
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ipv4_of(sealed) + 1);
	struct packet_spec ike = {.destination_port = 4500, .payload_length = 100};

	udp->dst_port = RTE_BE16(4501);
	assert_false(esp_far_passes(link, sealed));
	assert_false(esp_far_passes(link, packet_from_spec(rig, &ike)));
	assert_int_equal(nf_count(link->far, "foreign"), 2);
	sealed = esp_sealed(rig, esp_some_packet(rig));
	udp = (struct rte_udp_hdr *)(ipv4_of(sealed) + 1);
	udp->src_port = RTE_BE16(1024); /* translated by NAT */
	assert_true(esp_far_passes(link, sealed));
}

/* Dummy packets (RFC 4303, section 2.6) are decrypted and freed. */
RIG_TEST(dummies_are_freed)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);
	const struct packet_spec none = {.protocol = IPPROTO_NONE, .payload_length = 100};

	assert_false(esp_far_passes(link, esp_sealed(rig, packet_from_spec(rig, &none))));
	assert_int_equal(nf_count(link->far, "dummies"), 1);
}

/* ESP packets in segments, with padding of the frame, or with IP options are decrypted. */
RIG_TEST(any_frame_is_decrypted)
{
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", NULL, 0);

	for (uint16_t first = 34; first < 100; first++) {
		struct rte_mbuf *sealed = esp_sealed(rig, esp_some_packet(rig));

		assert_non_null(rte_pktmbuf_append(sealed, 5));
		assert_true(esp_far_passes(link, in_two(rig, sealed, first)));
		assert_int_equal(rte_pktmbuf_data_len(link->out.packets[0]), 14 + 20 + 8 + 1000);
		assert_true(checksums_right(link->out.packets[0]));
	}
}

/* No packet makes it crash or leak, also without integrity, where nonsense is decrypted. */
RIG_TEST(survives_any_packet)
{
	const struct nf_setting settings[] = {{"hmac_key", 0, ""}};
	struct esp_link *link = esp_link_make(rig, "Encrypt", "Decrypt", settings, 1);

	esp_check_hostile(link);
}
