#include "tests/offloading.h"

#include <string.h>

#include <zlib.h>

#include "core/random.h"
#include "tests/hostile.h"

#define IPCOMP 108
#define MOST_BYTES 4096

static const char repetitive[] = "so much depends upon so much depends upon so much depends upon "
				 "so much depends upon so much depends upon so much depends upon "
				 "so much depends upon so much depends upon so much depends upon ";

struct bytes {
	uint16_t n;
	uint8_t at[MOST_BYTES];
};

static struct bytes bytes_of(struct rte_mbuf *packet)
{
	struct bytes bytes;

	bytes.n = packet_bytes(packet, bytes.at, sizeof(bytes.at));
	return bytes;
}

/*
 * Decompress a sent packet as a receiver does (RFC 3173, section 2.2); uncompressed ones are
 * returned unchanged. Both checksums must be correct.
 */
static struct bytes decompressed(struct rte_mbuf *packet)
{
	const struct packet headers = packet_parse(packet);
	struct bytes bytes = bytes_of(packet);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes.at + headers.l3);
	const uint16_t header = rte_ipv4_hdr_len(ip);
	uint8_t *behind = bytes.at + headers.l3 + header, out[MOST_BYTES];
	z_stream stream = {.next_out = out, .avail_out = sizeof(out)};

	assert_int_equal(headers.type, PACKET_IPV4);
	assert_int_equal(rte_raw_cksum(ip, header), 0xffff);
	if (ip->next_proto_id != IPCOMP)
		return bytes;
	assert_int_equal(behind[1], 0); /* flags */
	assert_int_equal(behind[2] << 8 | behind[3], 2);
	assert_int_equal(headers.l3 + rte_be_to_cpu_16(ip->total_length), bytes.n);
	stream.next_in = behind + 4;
	stream.avail_in = bytes.n - headers.l3 - header - 4;
	assert_int_equal(inflateInit2(&stream, -15), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	ip->next_proto_id = behind[0];
	ip->total_length = rte_cpu_to_be_16(header + stream.total_out);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	memcpy(behind, out, stream.total_out);
	bytes.n = headers.l3 + header + stream.total_out;
	inflateEnd(&stream);
	return bytes;
}

/* Offer a packet; returns whether it left compressed. Decompression must return the original. */
static bool is_compressed(struct rig *rig, struct rte_mbuf *packet)
{
	const struct bytes before = bytes_of(packet);
	const uint64_t compressed = rig_count(rig, "compressed");
	struct bytes after;

	rig_offer(rig, packet, 1);
	assert_int_equal(rig->out.n, 1);
	after = decompressed(rig->out.packets[0]);
	assert_int_equal(after.n, before.n);
	assert_memory_equal(after.at, before.at, before.n);
	if (rig_count(rig, "compressed") == compressed)
		return false;
	assert_true(rte_pktmbuf_pkt_len(rig->out.packets[0]) < before.n);
	return true;
}

/* UDP, TCP and ICMP with a text shrink, tagged or not, and decompress to the original. */
BOTH_TEST(text_shrinks_and_decompresses)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	struct packet_spec packet_spec = {.source = RTE_IPV4(10, 0, 0, 1),
					  .destination = RTE_IPV4(10, 0, 2, 1),
					  .payload = repetitive,
					  .payload_length = sizeof(repetitive) - 1};

	rig_make(rig, "IPCompGateway", NULL, 0);
	for (unsigned int i = 0; i < 2 * RTE_DIM(protocols); i++) {
		packet_spec.protocol = protocols[i / 2];
		packet_spec.vlan = i % 2 ? 9 : 0;
		assert_true(is_compressed(rig, packet_from_spec(rig, &packet_spec)));
	}
	assert_int_equal(rig_count(rig, "compressed"), 6);
	assert_true(rig_count(rig, "bytes_out") < rig_count(rig, "bytes_in") / 2);
}

/* Payloads of any length and randomness decompress to the original. */
BOTH_TEST(any_payload_decompresses_to_the_original)
{
	uint64_t random = 1;
	uint8_t payload[1472];

	rig_make(rig, "IPCompGateway", NULL, 0);
	for (uint16_t length = 1; length <= sizeof(payload); length += 29) {
		const uint32_t symbols = 1 + random_below(&random, 256);

		for (uint16_t i = 0; i < length; i++)
			payload[i] = random_below(&random, symbols);
		is_compressed(rig, packet_from_spec(
					   rig, &(struct packet_spec){.payload = payload,
								      .payload_length = length}));
	}
	assert_true(rig_count(rig, "compressed") > 10);
	assert_true(rig_count(rig, "unshrunk") > 2);
}

/* Incompressible packets leave unchanged (RFC 3173, section 2.2: no expansion). */
BOTH_TEST(incompressible_packets_leave_unchanged)
{
	uint64_t random = 1;
	uint8_t noise[1000];

	for (unsigned int i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)random_next(&random);
	rig_make(rig, "IPCompGateway", NULL, 0);
	assert_false(is_compressed(
		rig, packet_from_spec(rig, &(struct packet_spec){.payload = noise,
								 .payload_length = 1000})));
	assert_int_equal(rig_count(rig, "unshrunk"), 1);
}

/* A packet is compressed only if it shrinks. */
BOTH_TEST(only_shrinking_packets_are_compressed)
{
	uint64_t random = 1;
	uint8_t payload[400] = {0};

	rig_make(rig, "IPCompGateway", NULL, 0);
	for (uint16_t noise = 100; noise < 300; noise += 10) {
		for (uint16_t i = 0; i < noise; i++)
			payload[i] = (uint8_t)random_next(&random);
		memset(payload + noise, 0, sizeof(payload) - noise);
		for (uint16_t zeros = 0; zeros < 40; zeros++)
			is_compressed(rig, packet_from_spec(
						   rig, &(struct packet_spec){
								.payload = payload,
								.payload_length = noise + zeros}));
	}
	assert_true(rig_count(rig, "compressed") > 100);
	assert_true(rig_count(rig, "unshrunk") > 100);
}

/* Fragments, segmented, small and already compressed packets leave unchanged. */
BOTH_TEST(fragments_and_small_packets_leave_unchanged)
{
	struct packet_spec packet_spec = {.payload = repetitive,
					  .payload_length = sizeof(repetitive) - 1};
	struct packet_spec small = {.payload = repetitive, .payload_length = 90 - 8 - 1};
	struct packet_spec first = packet_spec, later = packet_spec, ipcomp = packet_spec;

	first.fragment = RTE_IPV4_HDR_MF_FLAG;
	later.fragment = 10;
	ipcomp.protocol = IPCOMP;
	rig_make(rig, "IPCompGateway", NULL, 0);
	assert_false(is_compressed(rig, packet_from_spec(rig, &small)));
	assert_false(is_compressed(rig, packet_from_spec(rig, &first)));
	assert_false(is_compressed(rig, packet_from_spec(rig, &later)));
	assert_false(is_compressed(rig, in_two(rig, packet_from_spec(rig, &packet_spec), 60)));
	assert_int_equal(rig_count(rig, "skipped"),
			 3); /* the type of a non-initial fragment is unknown */
	rig_offer(rig, packet_from_spec(rig, &ipcomp), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "compressed"), 0);
	small.payload_length++;
	assert_true(is_compressed(rig, packet_from_spec(rig, &small)));
}

/* Padding of the frame is not compressed, and is removed. */
BOTH_TEST(padding_is_removed)
{
	struct rte_mbuf *packet = packet_from_spec(
		rig, &(struct packet_spec){.payload = repetitive,
					   .payload_length = sizeof(repetitive) - 1});
	struct bytes before = bytes_of(packet), after;

	rig_make(rig, "IPCompGateway", NULL, 0);
	assert_non_null(rte_pktmbuf_append(packet, 5));
	rig_offer(rig, packet, 1);
	assert_int_equal(rig_count(rig, "compressed"), 1);
	after = decompressed(rig->out.packets[0]);
	assert_int_equal(after.n, before.n);
	assert_memory_equal(after.at, before.at, before.n);
}

/* Payloads are scanned before they are compressed. */
BOTH_TEST(payloads_are_scanned)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", repetitive, witness_of("ssh"), witness_of("vnc"));
	rig_make(rig, "IPCompGateway", NULL, 0);
	assert_true(is_compressed(rig, packet_with(rig, 1, text)));
	assert_counts(rig, {"scanned", 1}, {"matches", 2});
}

/* The sender's payload stays unchanged: traffic sends the same payloads again. */
BOTH_TEST(input_payloads_stay_unchanged)
{
	struct rte_mbuf *packet, *kept;
	struct bytes before;

	rig_make(rig, "IPCompGateway", NULL, 0);
	packet = packet_with(rig, 1, repetitive);
	before = bytes_of(packet);
	kept = packet;
	rte_mbuf_refcnt_update(kept, 1);
	assert_true(is_compressed(rig, packet));
	assert_memory_equal(bytes_of(kept).at, before.at, before.n);
	rte_pktmbuf_free(kept);
}

/* Without a buffer for the compressed packet, the original is sent. */
BOTH_TEST(without_buffers_nothing_is_compressed)
{
	struct rte_mbuf *taken[RIG_PACKETS];

	rig_make(rig, "IPCompGateway", NULL, 0);
	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS), 0);
	assert_false(is_compressed(rig, packet_with(rig, 1, repetitive)));
	assert_int_equal(rig_count(rig, "unbuffered"), 1);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS);
	rig->nf->spare = NULL;
	assert_false(is_compressed(rig, packet_with(rig, 1, repetitive)));
	assert_int_equal(rig_count(rig, "unbuffered"), 2);
}

SCANNING_TESTS("IPCompGateway")
