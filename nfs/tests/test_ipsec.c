#include "functions/ipsec/cipher.h"
#include "tests/esp_rig.h"

#define ESP_AT (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))

static const struct nf_setting transport[] = {{"tunnel", 0}};
static const struct nf_setting tunnel[] = {{"tunnel", 1}};

/* A test vector of RFC 3686, section 6: numbered bytes from 0 on, but the text of the first one. */
struct vector {
	struct ipsec_keys keys;
	uint8_t iv[IPSEC_IV];
	size_t n;
	const char *text;
	uint8_t sealed[36];
};

static const struct vector vectors[] = {
	{.keys = {.cipher = {0xae, 0x68, 0x52, 0xf8, 0x12, 0x10, 0x67, 0xcc, 0x4b, 0xf7, 0xa5, 0x76,
			     0x55, 0x77, 0xf3, 0x9e},
		  .nonce = {0, 0, 0, 0x30}},
	 .n = 16,
	 .text = "Single block msg",
	 .sealed = {0xe4, 0x09, 0x5d, 0x4f, 0xb7, 0xa7, 0xb3, 0x79, 0x2d, 0x61, 0x75, 0xa3, 0x26,
		    0x13, 0x11, 0xb8}},
	{.keys = {.cipher = {0x7e, 0x24, 0x06, 0x78, 0x17, 0xfa, 0xe0, 0xd7, 0x43, 0xd6, 0xce, 0x1f,
			     0x32, 0x53, 0x91, 0x63},
		  .nonce = {0x00, 0x6c, 0xb6, 0xdb}},
	 .iv = {0xc0, 0x54, 0x3b, 0x59, 0xda, 0x48, 0xd9, 0x0b},
	 .n = 32,
	 .sealed = {0x51, 0x04, 0xa1, 0x06, 0x16, 0x8a, 0x72, 0xd9, 0x79, 0x0d, 0x41,
		    0xee, 0x8e, 0xda, 0xd3, 0x88, 0xeb, 0x2e, 0x1e, 0xfc, 0x46, 0xda,
		    0x57, 0xc8, 0xfc, 0xe6, 0x30, 0xdf, 0x91, 0x41, 0xbe, 0x28}},
	{.keys = {.cipher = {0x76, 0x91, 0xbe, 0x03, 0x5e, 0x50, 0x20, 0xa8, 0xac, 0x6e, 0x61, 0x85,
			     0x29, 0xf9, 0xa0, 0xdc},
		  .nonce = {0x00, 0xe0, 0x01, 0x7b}},
	 .iv = {0x27, 0x77, 0x7f, 0x3f, 0x4a, 0x17, 0x86, 0xf0},
	 .n = 36,
	 .sealed = {0xc1, 0xcf, 0x48, 0xa8, 0x9f, 0x2f, 0xfd, 0xd9, 0xcf, 0x46, 0x52, 0xe9,
		    0xef, 0xdb, 0x72, 0xd7, 0x45, 0x40, 0xa4, 0x2b, 0xde, 0x6d, 0x78, 0x36,
		    0xd5, 0x9a, 0x5c, 0xea, 0xae, 0xf3, 0x10, 0x53, 0x25, 0xb2, 0x07, 0x2f}},
};

/* The vectors of RFC 3686, encrypted and decrypted again. */
TEST(ciphertext_is_that_of_the_rfc)
{
	for (unsigned int i = 0; i < RTE_DIM(vectors); i++) {
		const struct vector *vector = &vectors[i];
		struct ipsec_cipher *cipher = ipsec_cipher_create("test", &vector->keys);
		uint8_t bytes[36], before[36];

		for (uint8_t k = 0; k < vector->n; k++)
			before[k] = vector->text ? (uint8_t)vector->text[k] : k;
		memcpy(bytes, before, vector->n);
		assert_non_null(cipher);
		assert_true(ipsec_crypt(cipher, vector->iv, bytes, vector->n));
		assert_memory_equal(bytes, vector->sealed, vector->n);
		assert_true(ipsec_crypt(cipher, vector->iv, bytes, vector->n));
		assert_memory_equal(bytes, before, vector->n);
		ipsec_cipher_destroy(cipher);
	}
}

/* Vectors of RFC 2202 with keys of 20 bytes, cut to 96 bits (RFC 2404). */
TEST(integrity_is_that_of_the_rfc)
{
	static const uint8_t hi[] = {0xb6, 0x17, 0x31, 0x86, 0x55, 0x05,
				     0x72, 0x64, 0xe2, 0x8b, 0xc0, 0xb6};
	static const uint8_t dd[] = {0x12, 0x5d, 0x73, 0x42, 0xb9, 0xac,
				     0x11, 0xcd, 0x91, 0xa3, 0x9a, 0xf4};
	struct ipsec_keys keys = {.nonce = {0}};
	uint8_t icv[IPSEC_ICV], data[50];
	struct ipsec_cipher *cipher;

	memset(keys.hmac, 0x0b, sizeof(keys.hmac));
	cipher = ipsec_cipher_create("test", &keys);
	assert_true(ipsec_authenticate(cipher, (const uint8_t *)"Hi There", 8, icv));
	assert_memory_equal(icv, hi, sizeof(hi));
	ipsec_cipher_destroy(cipher);
	memset(keys.hmac, 0xaa, sizeof(keys.hmac));
	memset(data, 0xdd, sizeof(data));
	cipher = ipsec_cipher_create("test", &keys);
	assert_true(ipsec_authenticate(cipher, data, sizeof(data), icv));
	assert_memory_equal(icv, dd, sizeof(dd));
	ipsec_cipher_destroy(cipher);
}

/* Whatever is encrypted comes back, in both directions and modes. */
RIG_TEST(the_other_end_restores_every_byte)
{
	for (int mode = 0; mode < 2; mode++) {
		struct esp_link *link =
			esp_link_make(rig, "IPSec", "IPSec", mode ? tunnel : transport, 1);

		esp_check_round_trips(link);
	}
}

/* In a tunnel the outer header has the ends' addresses, and ESP holds the whole packet. */
RIG_TEST(packets_are_esp_in_tunnel_mode)
{
	const struct rte_ipv4_hdr *ip;
	struct rte_mbuf *sealed;
	const uint8_t *esp;

	RIG_MAKE(rig, "IPSec", {"local", RTE_IPV4(1, 2, 3, 4)}, {"remote", RTE_IPV4(5, 6, 7, 8)});
	sealed = esp_sealed(rig, esp_some_packet(rig));
	ip = ipv4_of(sealed);
	esp = rte_pktmbuf_mtod_offset(sealed, const uint8_t *, ESP_AT);
	assert_header_checksum(sealed);
	assert_int_equal(ip->next_proto_id, IPPROTO_ESP);
	assert_int_equal(ip->time_to_live, 64);
	assert_int_equal(rte_be_to_cpu_32(ip->src_addr), RTE_IPV4(1, 2, 3, 4));
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), RTE_IPV4(5, 6, 7, 8));
	/* SPI 256, number 1, IV of seed 1 and number 1 */
	assert_memory_equal(esp, ((uint8_t[]){0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}), 16);
	/* IV, 1,028 bytes padded to a multiple of 4 with 2 more, integrity check value */
	assert_int_equal(rte_be_to_cpu_16(ip->total_length), 20 + 8 + 8 + 1032 + 12);
	assert_int_equal(rte_pktmbuf_data_len(sealed), 14 + 20 + 8 + 8 + 1032 + 12);
	rte_pktmbuf_free(sealed);
}

/* Every packet that arrives takes a number, so that one that is not encrypted leaves a gap. */
RIG_TEST(numbers_count_arrivals)
{
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct rte_mbuf *sealed;

	rig_make(rig, "IPSec", transport, 1);
	rig_offer(rig, packet_of(rig, arp, sizeof(arp)), 1);
	sealed = esp_sealed(rig, esp_some_packet(rig));
	assert_int_equal(*rte_pktmbuf_mtod_offset(sealed, uint8_t *, ESP_AT + 7), 2);
	rte_pktmbuf_free(sealed);
}

/* Give a packet another ECN mark. */
static void put_mark(struct rte_mbuf *packet, uint8_t mark)
{
	ipv4_of(packet)->type_of_service = mark;
	header_checksum_set(ipv4_of(packet));
}

/* A mark that a router in the tunnel sets comes out as RFC 6040, section 4.2, says. */
RIG_TEST(congestion_marks_leave_the_tunnel)
{
	/* by the inner and the outer mark: 0 none, 1 ECT(1), 2 ECT(0), 3 CE; -1: freed */
	static const int marks[4][4] = {{0, 0, 0, -1}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
	struct esp_link *link = esp_link_make(rig, "IPSec", "IPSec", tunnel, 1);

	for (uint8_t inner = 0; inner < 4; inner++)
		for (uint8_t outer = 0; outer < 4; outer++) {
			struct rte_mbuf *packet = esp_some_packet(rig), *sealed;

			put_mark(packet, inner);
			sealed = esp_sealed(rig, packet);
			assert_int_equal(ipv4_of(sealed)->type_of_service, inner);
			put_mark(sealed, outer);
			assert_int_equal(esp_far_passes(link, sealed), marks[inner][outer] >= 0);
			if (link->out.n == 0)
				continue;
			assert_header_checksum(link->out.packets[0]);
			assert_int_equal(ipv4_of(link->out.packets[0])->type_of_service,
					 marks[inner][outer]);
			nf_out_free(&link->out);
		}
	assert_int_equal(nf_count(link->far, "congested"), 1);
}

/* Fragments pass in a tunnel, which is for packets, and are freed in transport mode. */
RIG_TEST(fragments_pass_tunnels)
{
	struct packet_spec first = {.payload_length = 64, .fragment = RTE_IPV4_HDR_MF_FLAG};

	rig_make(rig, "IPSec", tunnel, 1);
	rig_offer(rig, packet_from_spec(rig, &first), 1);
	assert_int_equal(rig->out.n, 1);
	rig_make(rig, "IPSec", transport, 1);
	rig_frees(rig, packet_from_spec(rig, &first), 1);
	assert_int_equal(rig_count(rig, "fragments"), 1);
}

/* An ESP packet with any byte changed, or shortened, is never sent. */
RIG_TEST(changes_are_noticed)
{
	for (int mode = 0; mode < 2; mode++) {
		struct esp_link *link =
			esp_link_make(rig, "IPSec", "IPSec", mode ? tunnel : transport, 1);

		esp_check_changes_are_noticed(link);
	}
}

/* The sender's packet stays unchanged: traffic sends the same payloads again. */
RIG_TEST(received_packets_stay_unchanged)
{
	rig_make(rig, "IPSec", tunnel, 1);
	esp_check_unchanged(rig);
}

/* Keys that are not hexadecimal or not of their length are refused. */
RIG_TEST(wrong_keys_are_refused)
{
	static const struct nf_setting wrong[] = {
		{"key", 0, "00"}, {"nonce", 0, "0000003"}, {"hmac_key", 0, ""}, {"tunnel", 2}};

	esp_check_refused(rig, "IPSec", wrong, RTE_DIM(wrong));
}

/* Without buffers, or with too small ones, packets are freed and counted. */
RIG_TEST(packets_without_room_are_freed)
{
	/* headers of Ethernet, IPv4 and ESP, IV and value; then a multiple of 4, with a tail */
	struct packet_spec packet_spec = {.payload_length =
						  (2048 - 14 - 20 - 16 - 12) / 4 * 4 - 2 - 28};

	rig_make(rig, "IPSec", tunnel, 1);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "encrypted"), 1);
	packet_spec.payload_length += 4;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "too_long"), 1);
	rig->nf->spare = NULL;
	rig_offer(rig, esp_some_packet(rig), 1);
	assert_int_equal(rig_count(rig, "no_buffer"), 1);
	assert_int_equal(rig->out.n, 0);
}

/* No packet makes either end crash or leak. */
RIG_TEST(survives_any_packet)
{
	for (int mode = 0; mode < 2; mode++) {
		struct esp_link *link =
			esp_link_make(rig, "IPSec", "IPSec", mode ? tunnel : transport, 1);

		esp_check_hostile(link);
	}
}

#define AGED 600000000ull /* us, after which an MTU is forgotten */

/* An ICMP error from outside that a sealed packet with a sequence number is too big for an MTU. */
static struct rte_mbuf *too_big(struct rig *rig, uint32_t spi, uint32_t sequence, uint16_t mtu)
{
	struct {
		struct rte_icmp_hdr icmp;
		struct rte_ipv4_hdr ip;
		struct rte_esp_hdr esp;
	} __rte_packed error = {
		.icmp = {.icmp_type = 3, .icmp_code = 4, .icmp_seq_nb = rte_cpu_to_be_16(mtu)},
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
		       .total_length = RTE_BE16(1400),
		       .next_proto_id = IPPROTO_ESP,
		       .src_addr = RTE_BE32(RTE_IPV4(192u, 0, 2, 1)),
		       .dst_addr = RTE_BE32(RTE_IPV4(198u, 51, 100, 1))},
		.esp = {.spi = rte_cpu_to_be_32(spi), .seq = rte_cpu_to_be_32(sequence)},
	};
	uint8_t bytes[sizeof(error)];
	struct rte_mbuf *packet;
	struct rte_icmp_hdr *icmp;

	error.ip.hdr_checksum = rte_ipv4_cksum(&error.ip);
	memcpy(bytes, &error, sizeof(error));
	packet = packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(9, 9, 9, 9),
							    .destination = RTE_IPV4(192u, 0, 2, 1),
							    .protocol = IPPROTO_ICMP,
							    .payload = bytes + sizeof(error.icmp),
							    .payload_length = sizeof(error) -
									      sizeof(error.icmp),
							    .from = NF_OUTSIDE});
	icmp = rte_pktmbuf_mtod_offset(packet, struct rte_icmp_hdr *, ESP_AT);
	*icmp = error.icmp;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, sizeof(error));
	return packet;
}

/* How a packet of this length that must not be fragmented leaves: sealed, or in an error. */
static bool is_sealed(struct rig *rig, uint16_t length, uint64_t now_us)
{
	struct packet_spec packet_spec = {.source = RTE_IPV4(10, 0, 0, 1),
					  .destination = RTE_IPV4(10, 0, 1, 1),
					  .fragment = RTE_IPV4_HDR_DF_FLAG,
					  .payload_length = length - 28};

	rig_offer(rig, packet_from_spec(rig, &packet_spec), now_us);
	return ipv4_of(rig_sent(rig))->next_proto_id == IPPROTO_ESP;
}

/* Too long packets are reported with what the tunnel takes, which they then fill. */
RIG_TEST(the_path_mtu_limits_packets)
{
	rig_make(rig, "IPSec", tunnel, 1);
	assert_true(is_sealed(rig, 1400, 1));
	rig_frees(rig, too_big(rig, 257, 1, 1000), 1);
	rig_frees(rig, too_big(rig, 256, 100, 1000), 1);
	assert_counts(rig, {"foreign", 2}, {"learnt", 0});
	rig_frees(rig, too_big(rig, 256, 1, 1003), 1);
	rig_frees(rig, too_big(rig, 256, 1, 1100), 1);
	assert_counts(rig, {"learnt", 2});
	assert_true(is_sealed(rig, 950, 1)); /* 20 + 8 + 8 + 952 + 12 = 1000 */
	assert_int_equal(rte_be_to_cpu_16(ipv4_of(rig_sent(rig))->total_length), 1000);
	assert_false(is_sealed(rig, 951, 1));
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, ESP_AT),
			    ((uint8_t[]){3, 4}), 2);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, ESP_AT + 6),
			    ((uint8_t[]){950 >> 8, 950 & 255}), 2);
	rig_frees(rig, too_big(rig, 256, 4, 0), 1);
	assert_false(is_sealed(rig, 527, 1));
	assert_true(is_sealed(rig, 526, 1)); /* 576 */
	assert_true(is_sealed(rig, 1400, 1 + AGED));
	assert_counts(rig, {"too_big", 2}, {"errors_sent", 2});
}

/* An error is believed about a packet of the last seconds, however many there were, and of no older one. */
RIG_TEST(errors_come_behind_many_packets)
{
	struct rte_mbuf *burst[32];

	rig_make(rig, "IPSec", tunnel, 1);
	assert_true(is_sealed(rig, 1400, 1));
	for (int i = 0; i < 70000 / 32; i++) {
		for (int k = 0; k < 32; k++)
			burst[k] = packet_of(rig, (const uint8_t[14]){[12] = 0x88}, 14);
		rig_offer_burst(rig, burst, 32, 35000);
	}
	rig_frees(rig, too_big(rig, 256, 1, 1003), 35000);
	assert_counts(rig, {"learnt", 1});
	assert_false(is_sealed(rig, 1400, 35000));
	for (uint64_t s = 1; s < 9; s++)
		rig_offer(rig, packet_of(rig, (const uint8_t[14]){[12] = 0x88}, 14), s * SECOND);
	rig_frees(rig, too_big(rig, 256, 1, 1003), 9 * SECOND);
	assert_counts(rig, {"learnt", 1}, {"foreign", 1});
}

/* Where the path takes less than 576 bytes, routers may fragment what leaves; else not. */
RIG_TEST(routers_fragment_where_the_path_takes_less_than_any_host)
{
	static const uint16_t mtus[] = {0, 576, 575, 0};

	rig_make(rig, "IPSec", tunnel, 1);
	assert_true(is_sealed(rig, 500, 1));
	for (size_t i = 0; i < RTE_DIM(mtus); i++) {
		const struct rte_ipv4_hdr *outer;

		rig_frees(rig, too_big(rig, 256, 1, mtus[i]), 1);
		assert_true(is_sealed(rig, 500, 1));
		outer = ipv4_of(rig_sent(rig));
		assert_int_equal(rte_be_to_cpu_16(outer->fragment_offset),
				 i < 2 ? RTE_IPV4_HDR_DF_FLAG : 0);
		assert_int_equal(outer->packet_id != 0, i >= 2);
		assert_int_equal(rte_raw_cksum(outer, sizeof(*outer)), 0xffff);
	}
	assert_true(is_sealed(rig, 500, 1 + AGED));
	assert_int_not_equal(ipv4_of(rig_sent(rig))->fragment_offset, 0);
}

/* A packet that routers may fragment leaves; so does any in transport mode. */
RIG_TEST(packets_that_may_be_fragmented_are_not_limited)
{
	for (int mode = 0; mode < 2; mode++) {
		rig_make(rig, "IPSec", mode ? tunnel : transport, 1);
		assert_true(is_sealed(rig, 1400, 1));
		rig_frees(rig, too_big(rig, 256, 1, 600), 1);
		rig_offer(rig, esp_some_packet(rig), 1);
		assert_int_equal(rig_count(rig, "encrypted"), 2);
		assert_int_equal(is_sealed(rig, 1400, 1), mode == 0);
	}
}

RIG_TEST(what_is_not_ipv4_leaves_as_set)
{
	rig_check_unknown(rig, "IPSec");
}
