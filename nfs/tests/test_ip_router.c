#include "tests/hostile.h"
#include "tests/random_routes.h"
#include "tests/udp.h"

static const struct nf_setting default_only[] = {{"routes", 0}, {"default_route", 1}};

static const struct rte_ipv4_hdr *ip_sent(struct rig *rig)
{
	return ipv4_of(rig_sent(rig));
}

/*
 * A packet is forwarded with decremented time to live, correct checksums, and the next hop's
 * address.
 */
RIG_TEST(forwards_to_the_next_hop)
{
	const struct rte_ether_hdr *ethernet;

	rig_make(rig, "IPRouter", default_only, 2);
	rig_offer(rig, packet_from_spec(rig, &udp), 1);
	assert_int_equal(ip_sent(rig)->time_to_live, 63);
	assert_true(checksums_right(rig_sent(rig)));
	ethernet = rte_pktmbuf_mtod(rig_sent(rig), const struct rte_ether_hdr *);
	assert_memory_equal(&ethernet->dst_addr, ((uint8_t[]){2, 0, 0, 1, 0, 0}), 6);
	assert_memory_equal(&ethernet->src_addr, ((uint8_t[]){2, 0, 0, 0, 0, 1}), 6);
	assert_int_equal(side_of(rig_sent(rig)), NF_OUTSIDE);
	assert_int_equal(rig_count(rig, "forwarded"), 1);
}

/* With several ports, a packet leaves by the gate of its next hop. */
RIG_TEST(leaves_by_the_gate_of_its_hop)
{
	bool seen[3] = {false};

	RIG_MAKE(rig, "IPRouter", {"routes", 100000}, {"hops", 6}, {"ports", 3}, {"seed", 4});
	assert_int_equal(nf_branches(rig->nf), 3);
	for (uint32_t i = 0; i < 2000; i++) {
		struct packet_spec packet_spec = udp;
		const struct rte_ether_hdr *ethernet;
		unsigned int branch;

		packet_spec.destination = RTE_IPV4(20, 0, 0, 1) + i * 0x9e3779b1u % 0x40000000u;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		ethernet = rte_pktmbuf_mtod(rig_sent(rig), const struct rte_ether_hdr *);
		branch = metadata_of(rig_sent(rig))->gate - NF_BRANCH;
		assert_int_equal(branch, ethernet->dst_addr.addr_bytes[5] % 3);
		seen[branch] = true;
	}
	assert_true(seen[0] && seen[1] && seen[2]);
}

/* Change a header's checksum by its identification. */
static void choose_checksum(struct rte_ipv4_hdr *ip, uint16_t checksum)
{
	ip->packet_id = 0;
	header_checksum_set(ip);
	ip->packet_id = ~checksum_changed(0, rte_cpu_to_be_16(checksum), ip->hdr_checksum);
	header_checksum_set(ip);
	assert_int_equal(rte_be_to_cpu_16(ip->hdr_checksum), checksum);
}

/* The updated checksum equals the recomputed one for every header checksum (RFC 1624). */
RIG_TEST(checksum_updates_equal_recomputation)
{
	static const uint16_t checksums[] = {0x0000, 0x0001, 0x00ff, 0x0100, 0x1234, 0xfdff,
					     0xfe00, 0xfefe, 0xfeff, 0xff00, 0xff01, 0xfffe};
	struct packet_spec packet_spec = udp;

	rig_make(rig, "IPRouter", default_only, 2);
	for (int ttl = 2; ttl <= 255; ttl++)
		for (size_t i = 0; i < RTE_DIM(checksums); i++) {
			struct rte_mbuf *packet;
			struct rte_ipv4_hdr anew;

			packet_spec.ttl = (uint8_t)ttl;
			packet = packet_from_spec(rig, &packet_spec);
			choose_checksum(ipv4_of(packet), checksums[i]);
			rig_offer(rig, packet, 1);
			anew = *ipv4_of(rig_sent(rig));
			header_checksum_set(&anew);
			assert_int_equal(ipv4_of(rig_sent(rig))->hdr_checksum, anew.hdr_checksum);
		}
}

/* With 3,000 routes of all lengths, each packet takes the longest matching one. */
RIG_TEST(longest_prefix_wins)
{
	enum { ROUTES = 3000 };
	struct routes source = {.random = 5, .hops = 200};
	static struct route routes[ROUTES];
	uint64_t random = 1, unroutable = 0;
	struct packet_spec packet_spec = udp;

	RIG_MAKE(rig, "IPRouter", {"routes", ROUTES}, {"seed", 5}, {"hops", 200},
		 {"default_route", 0});
	for (uint32_t i = 0; i < ROUTES; i++)
		routes[i] = routes_next(&source);
	for (int i = 0; i < 5000; i++) {
		const struct route *near = &routes[random_below(&random, ROUTES)];
		int hop;

		/* inside a route, or close to it */
		packet_spec.destination =
			near->prefix ^
			(uint32_t)(random_next(&random) >> (32 + random_below(&random, 32)));
		if (!ipv4_is_routed(rte_cpu_to_be_32(packet_spec.destination)))
			continue;
		hop = hop_by_search(routes, ROUTES, packet_spec.destination);
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		unroutable += hop < 0;
		assert_int_equal(rig_count(rig, "unroutable"), unroutable);
		if (hop >= 0)
			assert_int_equal(rte_pktmbuf_mtod(rig_sent(rig), uint8_t *)[5], hop);
	}
	assert_true(rig_count(rig, "forwarded") > 1000);
	assert_true(rig_count(rig, "unroutable") > 100);
}

/* A table of the Internet's size is created and used. */
RIG_TEST(table_of_half_a_million_routes)
{
	rig_make(rig, "IPRouter", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &udp), 1);
	assert_int_equal(rig_count(rig, "forwarded"), 1);
}

/* Packets from or to invalid addresses are freed (RFC 1812, section 5.3.7). */
RIG_TEST(invalid_addresses_are_freed)
{
	static const struct {
		uint32_t source, destination;
		const char *counted;
	} cases[] = {
		{RTE_IPV4(127, 0, 0, 1), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(169, 254, 7, 1), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(169, 254, 255, 1), "martian"},
		{RTE_IPV4(0, 0, 0, 0), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(224, 0, 0, 5), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(255, 255, 255, 255), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(240, 0, 0, 1), RTE_IPV4(8, 8, 8, 8), "martian"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(127, 0, 0, 1), "martian"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(0, 1, 2, 3), "martian"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(250, 0, 0, 1), "martian"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(224, 0, 0, 5), "multicast"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(255, 255, 255, 255), "multicast"},
		{RTE_IPV4(10, 0, 0, 1), RTE_IPV4(192, 0, 2, 254), "local"},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.source = cases[i].source;
		packet_spec.destination = cases[i].destination;
		rig_make(rig, "IPRouter", default_only, 2);
		rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(rig_count(rig, cases[i].counted), 1);
	}
}

/* A broadcast frame is not forwarded, whatever its IPv4 address (RFC 1812, section 5.3.4). */
RIG_TEST(broadcast_frames_are_freed)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);

	memset(rte_pktmbuf_mtod(packet, uint8_t *), 0xff, 6);
	rig_make(rig, "IPRouter", default_only, 2);
	rig_frees(rig, packet, 1);
	assert_int_equal(rig_count(rig, "multicast"), 1);
}

/* A header with a wrong checksum is not forwarded, with or without options. */
RIG_TEST(wrong_checksums_are_freed)
{
	struct rte_mbuf *packet;

	rig_make(rig, "IPRouter", default_only, 2);
	for (int byte = 0; byte < 20; byte++) {
		if (byte == 0 || byte == 2 || byte == 3 || byte == 9) /* may be malformed */
			continue;
		packet = packet_from_spec(rig, &udp);
		rte_pktmbuf_mtod_offset(packet, uint8_t *, 14)[byte] ^= 0x10;
		rig_frees(rig, packet, 1);
	}
	assert_int_equal(rig_count(rig, "bad_checksum"), 16);
}

/* Non-initial fragments and tagged packets are forwarded. */
RIG_TEST(fragments_and_tags_are_forwarded)
{
	struct packet_spec fragment = udp, tagged = udp;

	fragment.fragment = 10;
	tagged.vlan = 5;
	rig_make(rig, "IPRouter", default_only, 2);
	rig_offer(rig, packet_from_spec(rig, &fragment), 1);
	assert_int_equal(ip_sent(rig)->time_to_live, 63);
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(rig_count(rig, "forwarded"), 2);
}

/* The payload is not checked: a truncated TCP header is forwarded, tagged or not. */
RIG_TEST(payloads_are_not_checked)
{
	struct packet_spec packet_spec = udp;

	packet_spec.protocol = IPPROTO_TCP;
	packet_spec.ttl = 9;
	for (int tagged = 0; tagged < 2; tagged++) {
		struct rte_mbuf *packet;

		packet_spec.vlan = tagged ? 5 : 0;
		rig_make(rig, "IPRouter", default_only, 2);
		packet = packet_from_spec(rig, &packet_spec);
		rte_pktmbuf_mtod_offset(packet, struct rte_tcp_hdr *, tagged ? 38 : 34)->data_off =
			0;
		rig_offer(rig, packet, 1);
		assert_int_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), struct rte_ipv4_hdr *,
							 tagged ? 18 : 14)
					 ->time_to_live,
				 8);
	}
}

/* No malformed IPv4 header is sent, and every packet has a correct header checksum. */
RIG_TEST(hostile_packets_leave_with_valid_headers)
{
	static const uint32_t addresses[] = {RTE_IPV4(192, 0, 2, 254), RTE_IPV4(10, 0, 0, 1),
					     RTE_IPV4(20, 0, 0, 1)};

	RIG_MAKE(rig, "IPRouter", {"routes", 1000}, {"default_route", 0});
	offer_malformed(rig);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "forwarded"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), assert_header_checksum);
	assert_true(rig_count(rig, "errors_sent") > 100);
}

RIG_TEST(what_is_not_ipv4_leaves_as_set)
{
	rig_check_unknown(rig, "IPRouter");
}
