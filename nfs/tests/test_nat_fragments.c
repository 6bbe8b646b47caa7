#include "core/random.h"
#include "tests/nat_rig.h"

static void shuffle(struct rte_mbuf **packets, uint16_t n, uint64_t *random)
{
	for (uint16_t i = n - 1; i > 0; i--) {
		const uint32_t other = random_below(random, i + 1);

		RTE_SWAP(packets[i], packets[other]);
	}
}

/* Join the sent fragments, which must be of one datagram in order; returns its length. */
static uint16_t join_sent(struct rig *rig, uint16_t mtu, uint8_t *bytes)
{
	struct rte_ipv4_hdr *ip = NULL;
	uint16_t length = 0, behind = 0;

	for (uint32_t i = 0; i < rig->out.n; i++) {
		uint8_t part[LONG_PACKET + 100];
		const uint16_t n = packet_bytes(rig->out.packets[i], part, sizeof(part));
		const struct packet packet = packet_parse(rig->out.packets[i]);
		const uint16_t skipped = i == 0 ? 0 : packet.l3 + sizeof(*ip);
		const struct rte_ipv4_hdr *header = (struct rte_ipv4_hdr *)(part + packet.l3);
		const uint16_t flags = rte_be_to_cpu_16(header->fragment_offset);

		assert_header_checksum(rig->out.packets[i]);
		assert_true(rte_be_to_cpu_16(header->total_length) <= mtu);
		assert_int_equal((flags & RTE_IPV4_HDR_OFFSET_MASK) * 8, i == 0 ? 0 : behind);
		assert_int_equal(!(flags & RTE_IPV4_HDR_MF_FLAG), i + 1 == rig->out.n);
		assert_int_equal(side_of(rig->out.packets[i]), side_of(rig->out.packets[0]));
		memcpy(bytes + length, part + skipped, n - skipped);
		length += n - skipped;
		behind = length - packet.l3 - sizeof(*ip);
		ip = (struct rte_ipv4_hdr *)(bytes + packet.l3);
	}
	assert_non_null(ip);
	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + behind);
	ip->fragment_offset &= RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	header_checksum_set(ip);
	return length;
}

/*
 * Offer a packet whole and in fragments in any order: what is sent must be the same. Returns the
 * whole one that was sent.
 */
static struct rte_mbuf *assert_alike(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu,
				     uint64_t *random)
{
	uint8_t whole[LONG_PACKET + 100], joined[LONG_PACKET + 100];
	struct rte_mbuf *fragments[NF_BURST], *sent;
	const uint16_t n = fragments_of(rig, packet, mtu, fragments);
	uint16_t length;

	rig_offer(rig, packet, rig->nf->now_us);
	assert_true(checksums_right(rig_sent(rig)));
	sent = copy_of(rig, rig_sent(rig));
	length = packet_bytes(sent, whole, sizeof(whole));
	shuffle(fragments, n, random);
	rig_offer_burst(rig, fragments, n, rig->nf->now_us);
	assert_true(rig->out.n > 1);
	assert_int_equal(side_of(rig->out.packets[0]), side_of(sent));
	assert_int_equal(join_sent(rig, mtu, joined), length);
	assert_memory_equal(whole, joined, length);
	return sent;
}

/*
 * Fragments of UDP, TCP and ICMP in any order, from inside, from outside and hairpinned, are
 * translated like the whole packet, and sent no longer than they came (RFC 4787, REQ-14).
 */
RIG_TEST(fragments_are_translated_like_the_whole_packet)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	static const uint16_t mtus[] = {100, 268, 576, 1280, 1500};
	uint64_t random = 1;

	for (size_t i = 0; i < 10 * RTE_DIM(protocols) * RTE_DIM(mtus); i++) {
		const uint16_t mtu = mtus[i / RTE_DIM(protocols) % RTE_DIM(mtus)];
		const uint16_t length = mtu + random_below(&random, RTE_MIN(20 * (mtu - 90), 480));
		struct packet_spec out = udp, back, across = udp;
		struct rte_mbuf *sent;
		struct ends left;

		out.protocol = across.protocol = protocols[i % RTE_DIM(protocols)];
		out.vlan = random_below(&random, 2) * 9;
		out.id = across.id = (uint16_t)random_next(&random);
		rig_make(rig, "NAT", one_address, 2);
		sent = assert_alike(rig, long_packet(rig, &out, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_OUTSIDE);
		rte_pktmbuf_free(sent);
		out.vlan = 0;
		left = offered(rig, &out, 1);
		assert_int_equal(left.source, outside);
		back = reply_of(&out, left);
		if (out.protocol == IPPROTO_ICMP)
			back.source_port = left.source_port;
		sent = assert_alike(rig, long_packet(rig, &back, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_INSIDE);
		assert_int_equal(ends_of(sent).destination, host);
		rte_pktmbuf_free(sent);
		assert_int_equal(rig_count(rig, "reassembled"), 2);
		if (out.protocol == IPPROTO_ICMP) /* not hairpinned */
			continue;
		across.source = host + 5;
		across.destination = left.source;
		across.destination_port = left.source_port;
		sent = assert_alike(rig, long_packet(rig, &across, length, &random), mtu, &random);
		assert_int_equal(side_of(sent), NF_INSIDE);
		assert_int_equal(rig_count(rig, "hairpinned"), 2);
		rte_pktmbuf_free(sent);
	}
}

/* An ICMP error that arrives in fragments is translated whole, with its checksum. */
RIG_TEST(fragmented_errors_are_translated)
{
	struct packet_spec error = {.source = server + 7,
				    .destination = outside,
				    .protocol = IPPROTO_ICMP,
				    .from = NF_OUTSIDE};
	uint64_t random = 2;
	struct rte_icmp_hdr *icmp;
	struct rte_mbuf *packet;
	uint8_t quoted[900];

	rig_make(rig, "NAT", one_address, 2);
	rig_offer(rig, long_packet(rig, &udp, 1000, &random), 1);
	packet_bytes(rig_sent(rig), quoted, sizeof(quoted));
	error.payload = quoted + 14;
	error.payload_length = sizeof(quoted) - 14;
	packet = packet_from_spec(rig, &error);
	icmp = (struct rte_icmp_hdr *)(ipv4_of(packet) + 1);
	icmp->icmp_type = 3;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, 8 + error.payload_length);
	packet = assert_alike(rig, packet, 200, &random);
	assert_int_equal(ends_of(packet).destination, host);
	assert_int_equal(rig_count(rig, "errors"), 2);
	rte_pktmbuf_free(packet);
}

/* Duplicates and a packet between its fragments do not lose a datagram; each is sent once. */
RIG_TEST(duplicates_and_others_do_no_harm)
{
	uint64_t random = 3;
	struct rte_mbuf *packet, *fragments[NF_BURST], *burst[NF_BURST];
	uint16_t n, offered = 0;

	rig_make(rig, "NAT", one_address, 2);
	packet = long_packet(rig, &udp, 1000, &random);
	n = fragments_of(rig, packet, 576, fragments);
	assert_int_equal(n, 2);
	burst[offered++] = fragments[1];
	burst[offered++] = packet_from_spec(rig, &udp);
	burst[offered++] = copy_of(rig, fragments[1]);
	burst[offered++] = fragments[0];
	rig_offer_burst(rig, burst, offered, 1);
	assert_int_equal(rig->out.n, 3);
	assert_counts(rig, {"duplicates", 1}, {"fragments", 3}, {"reassembled", 1},
		      {"fragments_sent", 2}, {"outward", 2}, {"started", 1});
	rte_pktmbuf_free(packet);
}

/* DF on the fragments, as senders that discover the path's MTU set it, is kept. */
RIG_TEST(dont_fragment_of_fragments_is_kept)
{
	uint64_t random = 4;
	struct rte_mbuf *packet, *fragments[NF_BURST];
	uint8_t bytes[LONG_PACKET + 100];
	uint16_t n;

	rig_make(rig, "NAT", one_address, 2);
	packet = long_packet(rig, &udp, 1000, &random);
	for (int df = 0; df < 2; df++) {
		n = fragments_of(rig, packet, 400, fragments);
		for (uint16_t i = 0; i < n; i++) {
			if (df)
				ipv4_of(fragments[i])->fragment_offset |=
					RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
			header_checksum_set(ipv4_of(fragments[i]));
		}
		rig_offer_burst(rig, fragments, n, 1);
		assert_int_equal(rig->out.n, n);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(ipv4_of(rig->out.packets[i])->fragment_offset &
						 RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
					 df ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0);
		join_sent(rig, 400, bytes);
	}
	rte_pktmbuf_free(packet);
}

/* Congestion marks are joined; a datagram whose other fragments lack ECN is freed (RFC 3168). */
RIG_TEST(congestion_marks_are_joined)
{
	static const struct {
		uint8_t marks[2], expected; /* 0xff: freed */
	} cases[] = {{{2, 2}, 2}, {{2, 3}, 3}, {{3, 1}, 3}, {{0, 3}, 0xff}};
	uint64_t random = 6;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *fragments[NF_BURST],
			*packet = long_packet(rig, &udp, 1000, &random);

		assert_int_equal(fragments_of(rig, packet, 576, fragments), 2);
		for (int j = 0; j < 2; j++) {
			ipv4_of(fragments[j])->type_of_service = cases[i].marks[j];
			header_checksum_set(ipv4_of(fragments[j]));
		}
		rig_make(rig, "NAT", one_address, 2);
		rig_offer_burst(rig, fragments, 2, 1);
		assert_int_equal(rig_count(rig, "congested"), cases[i].expected == 0xff);
		assert_int_equal(rig->out.n, cases[i].expected == 0xff ? 0 : 2);
		for (uint32_t j = 0; j < rig->out.n; j++) {
			assert_header_checksum(rig->out.packets[j]);
			assert_int_equal(ipv4_of(rig->out.packets[j])->type_of_service,
					 cases[i].expected);
		}
		rte_pktmbuf_free(packet);
	}
}
