#include "core/fragment.h"

#include <errno.h>
#include <stdlib.h>

#include "core/random.h"
#include "tests/hostile.h"

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(198, 51, 100, 7),
				       .source_port = 1000,
				       .destination_port = 53};

/* The fragments of the last packet, freed with the next call. */
static struct rte_mbuf *fragments[FRAGMENTS_MOST];

static int cut(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu)
{
	const struct packet parsed = packet_parse(packet);

	return ipv4_fragment(packet, &parsed, mtu, rig->spare, fragments);
}

/* Reassemble the payload of fragments independently; returns its length and frees them. */
static uint32_t reassemble(int n, uint8_t *payload, uint16_t mtu)
{
	uint32_t end = 0, got = 0;

	for (int i = 0; i < n; i++) {
		uint8_t bytes[10000];
		const uint16_t length = packet_bytes(fragments[i], bytes, sizeof(bytes));
		const struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14);
		const uint16_t header = rte_ipv4_hdr_len(ip);
		const uint16_t field = rte_be_to_cpu_16(ip->fragment_offset);
		const uint16_t at = (field & RTE_IPV4_HDR_OFFSET_MASK) * 8;
		const uint16_t part = rte_be_to_cpu_16(ip->total_length) - header;

		assert_true(length - 14 <= mtu);
		assert_int_equal(length, 14 + header + part);
		assert_int_equal(rte_raw_cksum(ip, header), 0xffff);
		memcpy(payload + at, bytes + 14 + header, part);
		got += part;
		if (!(field & RTE_IPV4_HDR_MF_FLAG))
			end = at + part;
		else
			assert_int_equal(part % 8, 0);
	}
	assert_int_equal(got, end);
	rte_pktmbuf_free_bulk(fragments, n);
	return end;
}

/* A UDP packet with a random payload, in as many segments as needed. */
static struct rte_mbuf *long_packet(struct rig *rig, uint16_t length, uint8_t *payload)
{
	struct packet_spec packet_spec = udp;
	struct rte_mbuf *packet = packet_from_spec(rig, &packet_spec);
	struct rte_ipv4_hdr *ip = ipv4_of(packet);
	uint64_t random = length;

	for (uint16_t at = 0; at < length; at++)
		payload[at] = (uint8_t)random_next(&random);
	for (uint16_t at = 0, part; at < length; at += part) {
		part = RTE_MIN(length - at, 1900);
		if (rte_pktmbuf_chain(packet, packet_of(rig, payload + at, part)) != 0)
			abort();
	}
	ip->total_length = rte_cpu_to_be_16(28 + length);
	header_checksum_set(ip);
	return packet;
}

/* For any length, segments and MTU, fragments fit and reassemble to the packet. */
RIG_TEST(fragments_reassemble_to_the_packet)
{
	static const uint16_t mtus[] = {68, 69, 120, 576, 1280, 1500};
	uint64_t random = 9;

	for (int i = 0; i < 400; i++) {
		const uint16_t mtu = mtus[random_below(&random, RTE_DIM(mtus))];
		const uint16_t length = random_below(&random, 1900);
		uint8_t payload[1900], together[65536];
		struct rte_mbuf *packet = long_packet(rig, length, payload);

		if (random_below(&random, 2))
			assert_return_code(rte_pktmbuf_linearize(packet), 0);
		else if (random_below(&random, 2) && length > 10)
			packet = in_two(rig, packet, 50 + random_below(&random, length - 9));
		assert_int_equal(reassemble(cut(rig, packet, mtu), together, mtu), 8 + length);
		assert_memory_equal(together + 8, payload, length);
	}
}

/* With an MTU above a buffer's size, all fragments but the first fill a buffer. */
RIG_TEST(mtu_above_buffer_size)
{
	enum { MTU = 4000, LONG = 7000 };
	static uint8_t payload[LONG], together[65536];
	const int n = cut(rig, long_packet(rig, LONG, payload), MTU);

	assert_int_equal(n, 3); /* 3,976, 2,008 and 1,024 bytes behind their headers */
	assert_int_equal(rte_pktmbuf_pkt_len(fragments[0]), 14 + 20 + 3976);
	assert_int_equal(rte_pktmbuf_pkt_len(fragments[1]), 14 + 20 + 2008);
	assert_int_equal(reassemble(n, together, MTU), 8 + LONG);
	assert_memory_equal(together + 8, payload, LONG);
}

/* A fragment can be fragmented again and keeps its place in the datagram. */
RIG_TEST(fragments_can_be_fragmented)
{
	struct packet_spec packet_spec = udp;

	packet_spec.fragment = RTE_IPV4_HDR_MF_FLAG | 10;
	packet_spec.payload_length = 96;
	assert_int_equal(cut(rig, packet_from_spec(rig, &packet_spec), 68), 2);
	assert_int_equal(ipv4_of(fragments[0])->fragment_offset,
			 RTE_BE16(RTE_IPV4_HDR_MF_FLAG | 10));
	assert_int_equal(ipv4_of(fragments[1])->fragment_offset,
			 RTE_BE16(RTE_IPV4_HDR_MF_FLAG | 16));
	rte_pktmbuf_free_bulk(fragments, 2);
}

/* Non-initial fragments carry only the options with the copied flag (RFC 791). */
RIG_TEST(only_copied_options_are_repeated)
{
	static const uint8_t options[12] = {0x07, 7, 4, 0, 0, 0, 0, /* record route: not copied */
					    0x94, 4, 0, 0, 0};      /* router alert: copied */
	uint8_t payload[200], together[65536];
	struct rte_mbuf *packet = long_packet(rig, sizeof(payload), payload);
	char *front = rte_pktmbuf_prepend(packet, sizeof(options));
	struct rte_ipv4_hdr *ip = ipv4_of(packet);

	if (!front)
		abort();
	memmove(front, front + sizeof(options), 34);
	memcpy(front + 34, options, sizeof(options));
	ip->version_ihl = 0x48;
	ip->total_length = RTE_BE16(32 + 208);
	header_checksum_set(ip);
	assert_int_equal(cut(rig, packet, 100), 3); /* 64, 72 and 72 bytes */
	assert_int_equal(ipv4_of(fragments[0])->version_ihl, 0x48);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(ipv4_of(fragments[i])->version_ihl, 0x46);
		assert_memory_equal(ipv4_of(fragments[i]) + 1, options + 7, 4);
	}
	assert_int_equal(reassemble(3, together, 100), 208);
	assert_memory_equal(together + 8, payload, sizeof(payload));
}

/* A packet that cannot be fragmented stays unchanged, and no fragment leaks. */
static void assert_refused(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu, int error)
{
	const unsigned int used = rte_mempool_in_use_count(rig->spare);
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const struct rte_ipv4_hdr before = *ipv4_of(packet);

	assert_int_equal(cut(rig, packet, mtu), error);
	assert_int_equal(rte_mempool_in_use_count(rig->spare), used);
	assert_int_equal(rte_pktmbuf_pkt_len(packet), length);
	assert_memory_equal(ipv4_of(packet), &before, sizeof(before));
	rte_pktmbuf_free(packet);
}

/* Without buffers for all fragments, none is made. */
RIG_TEST(without_buffers_nothing_is_fragmented)
{
	struct rte_mbuf *taken[RIG_PACKETS];
	uint8_t payload[1000];

	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS - 3), 0);
	assert_refused(rig, long_packet(rig, sizeof(payload), payload), 68, -ENOMEM);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS - 3);
}

/* At most 256 fragments are made, here of 48 bytes each behind their headers. */
RIG_TEST(fragments_are_limited)
{
	enum { MOST = FRAGMENTS_MOST * 48 };
	static uint8_t payload[MOST], together[65536];
	const int n = cut(rig, long_packet(rig, MOST - 8, payload), 68);

	assert_int_equal(n, FRAGMENTS_MOST);
	assert_int_equal(reassemble(n, together, 68), MOST);
	assert_memory_equal(together + 8, payload, MOST - 8);
	assert_refused(rig, long_packet(rig, MOST - 7, payload), 68, -E2BIG);
}

/* A fragment that ends beyond the largest datagram is rejected. */
RIG_TEST(fragments_beyond_64_kb_are_rejected)
{
	struct packet_spec packet_spec = udp;

	packet_spec.fragment = RTE_IPV4_HDR_OFFSET_MASK;
	packet_spec.payload_length = 80;
	assert_refused(rig, packet_from_spec(rig, &packet_spec), 68, -EMSGSIZE);
}
