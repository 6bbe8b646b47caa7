#include "core/fragment.h"
#include "core/random.h"
#include "tests/hostile.h"
#include "tests/tunnel_rig.h"

/* A packet gets the outer header, with its type of service and correct checksums. */
RIG_TEST(adds_the_outer_header)
{
	const struct rte_ipv4_hdr *outer, *inner;
	struct rte_mbuf *packet = packet_from_spec(rig, &from_inside);

	ipv4_of(packet)->type_of_service = 0xb8;
	header_checksum_set(ipv4_of(packet));
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet, 1);
	outer = ipv4_of(rig_sent(rig));
	inner = outer + 1;
	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(rte_raw_cksum(inner, sizeof(*inner)), 0xffff);
	assert_int_equal(outer->next_proto_id, IPPROTO_IPIP);
	assert_int_equal(outer->type_of_service, 0xb8);
	assert_int_equal(rte_be_to_cpu_16(outer->total_length), 20 + 20 + 8 + 8);
	assert_int_equal(rte_be_to_cpu_32(outer->src_addr), TUNNEL_LOCAL);
	assert_int_equal(rte_be_to_cpu_32(outer->dst_addr), TUNNEL_REMOTE);
	assert_int_equal(outer->time_to_live, 64);
	assert_int_equal(inner->time_to_live, 63);
	assert_int_equal(rte_be_to_cpu_32(inner->src_addr), from_inside.source);
	assert_int_equal(side_of(rig_sent(rig)), NF_OUTSIDE);
	assert_int_equal(rig_count(rig, "encapsulated"), 1);
}

/* DF is copied to the outer header (RFC 2003, section 3.1). */
RIG_TEST(dont_fragment_is_copied)
{
	struct packet_spec packet_spec = from_inside;

	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(ipv4_of(rig_sent(rig))->fragment_offset, 0);
	packet_spec.fragment = RTE_IPV4_HDR_DF_FLAG;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(ipv4_of(rig_sent(rig))->fragment_offset, RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
}

/* Encapsulated and decapsulated, a packet is unchanged except for one hop. */
RIG_TEST(encapsulation_is_reversible)
{
	uint64_t random = 1;

	for (int i = 0; i < 300; i++) {
		uint8_t payload[1400], before[2000], after[2000];
		struct packet_spec packet_spec = from_inside;
		struct rte_mbuf *packet;
		uint16_t length;

		for (size_t at = 0; at < sizeof(payload); at++)
			payload[at] = (uint8_t)random_next(&random);
		packet_spec.payload = payload;
		packet_spec.payload_length = random_below(&random, sizeof(payload));
		packet_spec.protocol = random_below(&random, 2) ? IPPROTO_TCP : IPPROTO_UDP;
		packet_spec.vlan = random_below(&random, 2) * 5;
		packet_spec.ttl = 17;
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		decapsulate_at_other_end(rig);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		assert_true(checksums_right(rig_sent(rig)));
		packet_spec.ttl = 16;
		packet = packet_from_spec(rig, &packet_spec);
		length = packet_bytes(packet, before, sizeof(before));
		assert_int_equal(packet_bytes(rig_sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, length);
		rte_pktmbuf_free(packet);
	}
}

/* 1,500 bytes with an MTU of 1,500 make two fragments, the first as long as possible. */
RIG_TEST(full_size_packets_make_two_fragments)
{
	struct packet_spec packet_spec = from_inside;

	packet_spec.payload_length = 1500 - 28;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig->out.n, 2);
	assert_int_equal(rte_pktmbuf_pkt_len(rig->out.packets[0]), 14 + 20 + 20 + 1456);
	assert_int_equal(rte_pktmbuf_pkt_len(rig->out.packets[1]), 14 + 20 + 20 + 1480 - 1456);
	assert_counts(rig, {"fragmented", 1}, {"fragments", 2}, {"encapsulated", 2});
}

/* A packet above the MTU with DF is freed, and an ICMP error reports the MTU. */
RIG_TEST(reports_fragmentation_needed)
{
	struct packet_spec packet_spec = from_inside;
	const struct rte_ipv4_hdr *ip, *quoted;
	const uint8_t *icmp;

	packet_spec.payload_length = 1480 - 28;
	packet_spec.fragment = RTE_IPV4_HDR_DF_FLAG;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "encapsulated"), 1);
	packet_spec.payload_length++;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	ip = ipv4_of(rig_sent(rig));
	icmp = (const uint8_t *)(ip + 1);
	quoted = (const struct rte_ipv4_hdr *)(icmp + 8);
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), packet_spec.source);
	assert_int_equal(rte_be_to_cpu_32(ip->src_addr), TUNNEL_LOCAL);
	assert_memory_equal(icmp, ((uint8_t[]){3, 4}), 2);
	assert_memory_equal(icmp + 6, ((uint8_t[]){1480 >> 8, 1480 & 0xff}), 2);
	assert_int_equal(quoted->time_to_live, 64);
	assert_int_equal(rig_count(rig, "too_big"), 1);
}

/*
 * Packets with an expired time to live (RFC 2003, section 3.1), or from a tunnel's end, are freed.
 */
RIG_TEST(expired_and_looping_packets_are_freed)
{
	struct packet_spec packet_spec = from_inside;

	packet_spec.ttl = 1;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rte_pktmbuf_mtod(rig_sent(rig), uint8_t *)[34], 11);
	assert_int_equal(rig_count(rig, "expired"), 1);
	packet_spec.ttl = 9;
	packet_spec.source = TUNNEL_REMOTE;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	packet_spec.source = TUNNEL_LOCAL;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "looping"), 2);
}

/* Without buffers for all fragments, none is sent. */
RIG_TEST(without_buffers_nothing_is_sent)
{
	struct rte_mbuf *taken[RIG_PACKETS];
	struct packet_spec packet_spec = from_inside;

	packet_spec.payload_length = 1000;
	RIG_MAKE(rig, "IPTunnel", {"mtu", 88});
	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS - 3), 0);
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "no_room"), 1);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS - 3);
}

/* A tunnel packet is encapsulated like any other; invalid headers are freed. */
RIG_TEST(tunnels_may_nest)
{
	struct packet_spec packet_spec = from_inside;
	struct rte_mbuf *damaged = packet_from_spec(rig, &from_inside);

	packet_spec.protocol = IPPROTO_IPIP;
	packet_spec.payload_length = 60;
	ipv4_of(damaged)->hdr_checksum ^= 1;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(ipv4_of(rig_sent(rig))->next_proto_id, IPPROTO_IPIP);
	rig_offer(rig, damaged, 1);
	assert_counts(rig, {"bad_checksum", 1}, {"encapsulated", 1});
}

/* The payload is not checked: truncated TCP or an invalid length are encapsulated. */
RIG_TEST(payloads_are_not_checked)
{
	struct packet_spec tcp = from_inside;

	tcp.protocol = IPPROTO_TCP;
	for (int first = 0; first < 2; first++) {
		struct rte_mbuf *packet;

		tcp.fragment = first ? RTE_IPV4_HDR_MF_FLAG : 0;
		packet = packet_from_spec(rig, &tcp);
		((struct rte_tcp_hdr *)(ipv4_of(packet) + 1))->data_off = 0;
		if (first) {
			packet_cut(packet, 14 + 20 + 8);
			ipv4_of(packet)->total_length = RTE_BE16(20 + 8);
			header_checksum_set(ipv4_of(packet));
		}
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, packet, 1);
		decapsulate_at_other_end(rig);
		assert_header_checksum(rig_sent(rig));
		assert_int_equal(ipv4_of(rig_sent(rig))->time_to_live, 63);
	}
}

/* Hostile and mutated packets leave with valid headers or are freed. */
RIG_TEST(hostile_packets_leave_with_valid_headers)
{
	const uint32_t addresses[] = {TUNNEL_LOCAL, TUNNEL_REMOTE};
	struct rte_mbuf *through, *original;

	RIG_MAKE(rig, "IPTunnel", {"mtu", 200});
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "encapsulated"), 2); /* two have only a wrong TCP header */
	offer_hostile(rig, addresses, RTE_DIM(addresses), assert_header_checksum);
	tunnelled(rig, 1, 1432, &through, &original);
	offer_mutations_of(rig, &original, 1, assert_header_checksum);
	offer_mutations_of(rig, &through, 1, assert_header_checksum);
	assert_true(rig_count(rig, "decapsulated") > 1000);
}

RIG_TEST(what_is_not_ipv4_leaves_as_set)
{
	rig_check_unknown(rig, "IPTunnel");
}
