#include "tests/nat_rig.h"

#include "core/random.h"
#include "tests/files.h"
#include "tests/refusal.h"

/* A packet leaves with an external address and port, and the reply reaches its host. */
RIG_TEST(replies_reach_the_host)
{
	struct packet_spec back;
	struct ends left, came;

	rig_make(rig, "NAT", one_address, 2);
	left = offered(rig, &udp, 1);
	assert_int_equal(left.source, outside);
	assert_in_range(left.source_port, 1024, 65535);
	assert_int_equal(left.destination, server);
	assert_int_equal(left.destination_port, 53);
	assert_int_equal(side_of(rig_sent(rig)), NF_OUTSIDE);
	back = reply_of(&udp, left);
	came = offered(rig, &back, 2);
	assert_int_equal(came.source, server);
	assert_int_equal(came.destination, host);
	assert_int_equal(came.destination_port, 1001);
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	assert_counts(rig, {"outward", 1}, {"inward", 1});
}

/*
 * Reversing the translation of any UDP and TCP packet independently restores its bytes, including
 * checksums.
 */
RIG_TEST(translation_is_reversible)
{
	uint64_t random = 3;

	rig_make(rig, "NAT", NULL, 0);
	for (int i = 0; i < 5000; i++) {
		uint8_t before[200], after[200], payload[100];
		struct packet_spec packet_spec = {
			.source = host + random_below(&random, 1000),
			.destination = server + random_below(&random, 1000),
			.source_port = random_below(&random, 65536),
			.destination_port = random_below(&random, 65536),
			.protocol = random_below(&random, 2) ? IPPROTO_UDP : IPPROTO_TCP,
			.vlan = random_below(&random, 2) * 7,
			.payload = payload,
			.payload_length = random_below(&random, 100),
		};
		const uint16_t l3 = packet_spec.vlan ? 18 : 14;
		struct rte_mbuf *packet;
		uint16_t length;

		for (uint16_t at = 0; at < packet_spec.payload_length; at++)
			payload[at] = (uint8_t)random_next(&random);
		packet = packet_from_spec(rig, &packet_spec);
		length = packet_bytes(packet, before, sizeof(before));
		rig_offer(rig, packet, 1);
		assert_true(checksums_right(rig_sent(rig)));
		assert_int_equal(packet_bytes(rig_sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, l3 + 10); /* up to the header checksum */
		memcpy(after + l3 + 10, before + l3 + 10, 6);
		memcpy(after + l3 + 20, before + l3 + 20, 2);
		if (packet_spec.protocol == IPPROTO_UDP)
			memcpy(after + l3 + 26, before + l3 + 26, 2);
		else
			memcpy(after + l3 + 36, before + l3 + 36, 2);
		assert_memory_equal(before, after, length);
	}
}

/* A UDP packet without a checksum stays without one (RFC 768). */
RIG_TEST(missing_udp_checksums_stay_missing)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);
	const struct rte_udp_hdr *left;

	rte_pktmbuf_mtod_offset(packet, struct rte_udp_hdr *, 34)->dgram_cksum = 0;
	rig_make(rig, "NAT", one_address, 2);
	rig_offer(rig, packet, 1);
	left = rte_pktmbuf_mtod_offset(rig_sent(rig), const struct rte_udp_hdr *, 34);
	assert_int_equal(left->dgram_cksum, 0);
}

/*
 * A UDP checksum of 0 is sent as 0xffff, because 0 means none: the case for one of the 65,536
 * payloads of two bytes.
 */
RIG_TEST(zero_udp_checksums_are_sent_as_ffff)
{
	rig_make(rig, "NAT", one_address, 2);
	for (uint32_t i = 0; i < 2 * 65536; i++) {
		const uint16_t payload = (uint16_t)i;
		struct packet_spec packet_spec = udp;
		const struct rte_udp_hdr *left;

		packet_spec.payload = &payload;
		packet_spec.payload_length = sizeof(payload);
		packet_spec.vlan = i >> 16;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		left = rte_pktmbuf_mtod_offset(rig_sent(rig), const struct rte_udp_hdr *,
					       packet_spec.vlan ? 38 : 34);
		assert_int_not_equal(left->dgram_cksum, 0);
		assert_true(checksums_right(rig_sent(rig)));
	}
}

/* An endpoint has one external port for all remote hosts, and all may send to it. */
RIG_TEST(mapping_is_endpoint_independent)
{
	struct packet_spec other = udp, back;
	struct ends first, second, came;

	other.destination = server + 1;
	other.destination_port = 54;
	rig_make(rig, "NAT", one_address, 2);
	first = offered(rig, &udp, 1);
	second = offered(rig, &other, 1);
	assert_int_equal(first.source_port, second.source_port);
	assert_int_equal(rig_count(rig, "started"), 2);
	back = reply_of(&udp, first);
	back.source = server + 9;
	came = offered(rig, &back, 2);
	assert_int_equal(came.destination, host);
}

/* Two inside hosts reach each other by their external addresses (RFC 4787, REQ-9). */
RIG_TEST(hairpins_between_inside_hosts)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP};

	for (size_t i = 0; i < RTE_DIM(protocols); i++) {
		struct packet_spec packet_spec = udp, other = udp, back;
		struct ends left, came;

		packet_spec.protocol = other.protocol = protocols[i];
		rig_make(rig, "NAT", one_address, 2);
		left = offered(rig, &packet_spec, 1);
		other.source = host + 5;
		other.destination = left.source;
		other.destination_port = left.source_port;
		came = offered(rig, &other, 1);
		assert_int_equal(came.source, outside);
		assert_int_not_equal(came.source_port, other.source_port);
		assert_int_equal(came.destination, host);
		assert_int_equal(came.destination_port, packet_spec.source_port);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		back = reply_of(&other, came);
		back.from = NF_INSIDE;
		came = offered(rig, &back, 1);
		assert_int_equal(came.source, left.source);
		assert_int_equal(came.source_port, left.source_port);
		assert_int_equal(came.destination, other.source);
		assert_int_equal(came.destination_port, other.source_port);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		assert_counts(rig, {"outward", 3}, {"hairpinned", 2});
	}
}

/* Packets hairpinned to an unmapped endpoint, and ICMP, use no session and no port. */
RIG_TEST(unmapped_hairpins_use_no_session)
{
	struct packet_spec packet_spec = udp;

	packet_spec.destination = outside;
	rig_make(rig, "NAT", one_address, 2);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	packet_spec.protocol = IPPROTO_ICMP;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "unmapped"), 2);
	assert_int_equal(rig_count(rig, "started") + rig_count(rig, "outward"), 0);
}

/* Lone fragments, other protocols, IPv6 and unsolicited packets are freed and counted. */
RIG_TEST(unsupported_and_unsolicited_packets_are_freed)
{
	static const struct {
		struct packet_spec packet_spec;
		const char *counted;
	} cases[] = {
		{{.fragment = RTE_IPV4_HDR_MF_FLAG}, "fragments"},
		{{.fragment = 20}, "fragments"},
		{{.protocol = 51, .payload_length = 20}, "unsupported"},
		{{.protocol = IPPROTO_SCTP, .payload_length = 8}, "malformed"},
		{{.from = NF_OUTSIDE, .destination = RTE_IPV4(203, 0, 113, 0), .protocol = 47},
		 "unmapped"},
		{{.from = NF_OUTSIDE, .destination = RTE_IPV4(203, 0, 113, 0)}, "unmapped"},
		{{.from = NF_OUTSIDE, .destination = RTE_IPV4(10, 0, 0, 1)}, "unmapped"},
	};
	struct rte_mbuf *six;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig_make(rig, "NAT", one_address, 2);
		rig_frees(rig, packet_from_spec(rig, &cases[i].packet_spec), 1);
		assert_int_equal(rig_count(rig, cases[i].counted), 1);
	}
	six = packet_from_spec(rig, &udp);
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_offer(rig, six, 1);
	assert_int_equal(rig_count(rig, "unknown"), 1);
	RIG_MAKE(rig, "NAT", {"unknown", .text = "pass"});
	six = packet_from_spec(rig, &udp);
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_offer(rig, six, 1);
	assert_ptr_equal(rig_sent(rig), six);
	assert_int_equal(rig_count(rig, "other"), 1);
}

/* Packets of one new flow in a burst start one session. */
RIG_TEST(one_new_session_in_a_burst)
{
	struct rte_mbuf *burst[] = {packet_from_spec(rig, &udp), packet_from_spec(rig, &udp)};

	rig_make(rig, "NAT", one_address, 2);
	rig_offer_burst(rig, burst, 2, 1);
	assert_int_equal(rig->out.n, 2);
	assert_memory_equal(rte_pktmbuf_mtod(rig->out.packets[0], void *),
			    rte_pktmbuf_mtod(rig->out.packets[1], void *), 50);
	assert_int_equal(rig_count(rig, "started"), 1);
}

/* Add an IPv4 option of four bytes that does nothing. */
static void add_option(struct rte_mbuf *packet)
{
	char *front = rte_pktmbuf_prepend(packet, 4);
	struct rte_ipv4_hdr *ip;

	assert_non_null(front);
	memmove(front, front + 4, sizeof(struct rte_ether_hdr) + sizeof(*ip));
	ip = ipv4_of(packet);
	memset(ip + 1, 1, 4);
	ip->version_ihl = RTE_IPV4_VHL_DEF + 1;
	ip->total_length = rte_cpu_to_be_16(rte_be_to_cpu_16(ip->total_length) + 4);
	header_checksum_set(ip);
}

/* Packets of a flow leave in order, whichever of them have options. */
RIG_TEST(options_do_not_reorder_a_flow)
{
	struct rte_mbuf *burst[8];

	rig_make(rig, "NAT", one_address, 2);
	offered(rig, &udp, 1);
	for (unsigned int with = 0; with < 2; with++) {
		for (uint16_t i = 0; i < RTE_DIM(burst); i++) {
			struct packet_spec spec = udp;

			spec.id = i;
			burst[i] = packet_from_spec(rig, &spec);
			if (i % 2 == with)
				add_option(burst[i]);
		}
		rig_offer_burst(rig, burst, RTE_DIM(burst), 2);
		assert_int_equal(rig->out.n, RTE_DIM(burst));
		for (uint16_t i = 0; i < RTE_DIM(burst); i++)
			assert_int_equal(ipv4_of(rig->out.packets[i])->packet_id,
					 rte_cpu_to_be_16(i));
	}
}

/* No malformed packet is sent; hostile packets are sent only translated. */
RIG_TEST(hostile_packets_leave_translated)
{
	const uint32_t addresses[] = {host, server, outside};

	rig_make(rig, "NAT", one_address, 2);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "outward"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), check_crossed);
	assert_true(rig_count(rig, "outward") > 500);
}

/* The same for mutated outbound, inbound and hairpinned packets. */
RIG_TEST(mutated_packets_leave_translated)
{
	struct rte_mbuf *packets[6];
	unsigned int n = 0;

	rig_make(rig, "NAT", one_address, 2);
	for (int i = 0; i < 2; i++) {
		struct packet_spec packet_spec = udp, other = udp, back;
		struct ends left;

		packet_spec.protocol = other.protocol = i ? IPPROTO_TCP : IPPROTO_UDP;
		left = offered(rig, &packet_spec, 1);
		back = reply_of(&packet_spec, left);
		other.source = host + 5;
		other.destination = left.source;
		other.destination_port = left.source_port;
		packets[n++] = packet_from_spec(rig, &packet_spec);
		packets[n++] = packet_from_spec(rig, &back);
		packets[n++] = packet_from_spec(rig, &other);
	}
	offer_mutations_of(rig, packets, n, check_crossed);
	assert_true(rig_count(rig, "inward") > 500 && rig_count(rig, "hairpinned") > 500);
}

/* GRE, ESP and SCTP with an inside host come back to it, and are of one host by pair of addresses. */
RIG_TEST(protocols_without_ports_are_translated_by_addresses)
{
	static const uint8_t protocols[] = {47, 50, IPPROTO_SCTP};

	rig_make(rig, "NAT", one_address, 2);
	for (size_t i = 0; i < RTE_DIM(protocols); i++) {
		struct packet_spec packet_spec = udp, other, back = udp;

		packet_spec.protocol = protocols[i];
		packet_spec.payload = "\0\1\0\2tag.sum.chunk";
		packet_spec.payload_length = 17;
		other = packet_spec;
		other.source++;
		back = packet_spec;
		back.source = server;
		back.destination = outside;
		back.payload = "\0\2\0\1tag.sum.chunk";
		back.from = NF_OUTSIDE;
		rig_frees(rig, packet_from_spec(rig, &back), 1);
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->src_addr), outside);
		assert_header_checksum(rig_sent(rig));
		assert_int_equal(side_of(rig_sent(rig)), NF_OUTSIDE);
		rig_frees(rig, packet_from_spec(rig, &other), 1);
		rig_offer(rig, packet_from_spec(rig, &back), 1);
		assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->dst_addr), host);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		rig_offer(rig, packet_from_spec(rig, &other), 301 * SECOND);
		assert_int_equal(rig->out.n, 1);
	}
	assert_counts(rig, {"exhausted", 3}, {"unmapped", 3}, {"outward", 6}, {"inward", 3});
}

/* No host takes more than a sixteenth of the pairs, until the old ones are silent. */
RIG_TEST(a_host_leaves_pairs_to_others)
{
	struct packet_spec packet = {.source = host, .protocol = 50, .payload = "sealed",
				     .payload_length = 6, .from = NF_INSIDE};

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}, {"pairs", 64});
	for (uint32_t i = 0; i < 64; i++) {
		packet.destination = server + i;
		rig_offer(rig, packet_from_spec(rig, &packet), 1);
		assert_int_equal(rig->out.n, i < 4);
	}
	assert_counts(rig, {"exhausted", 60}, {"outward", 4});
	packet.destination = server + 100;
	for (uint32_t i = 1; i < 16; i++) {
		packet.source = host + i;
		for (uint32_t k = 0; k < 4; k++) {
			packet.destination = server + 100 + 4 * i + k;
			rig_offer(rig, packet_from_spec(rig, &packet), 1);
			assert_int_equal(rig->out.n, 1);
		}
	}
	packet.source = host + 100;
	packet.destination = server + 200;
	rig_frees(rig, packet_from_spec(rig, &packet), 300 * SECOND);
	assert_counts(rig, {"full", 1});
	packet.source = host;
	packet.destination = server + 9;
	rig_offer(rig, packet_from_spec(rig, &packet), 320 * SECOND);
	assert_int_equal(rig->out.n, 1);
}

/* SCTP in fragments is freed whole: only the first one has ports. */
RIG_TEST(fragments_of_sctp_are_freed)
{
	struct packet_spec packet = udp;

	packet.protocol = IPPROTO_SCTP;
	packet.payload = "\0\1\0\2tag.sum.chunks..";
	packet.payload_length = 16;
	rig_make(rig, "NAT", one_address, 2);
	packet.fragment = RTE_IPV4_HDR_MF_FLAG;
	rig_frees(rig, packet_from_spec(rig, &packet), 1);
	packet.fragment = 2;
	rig_frees(rig, packet_from_spec(rig, &packet), 1);
	assert_counts(rig, {"unsupported", 2}, {"outward", 0});
}

/* An external port is forwarded to an inside one, also without a packet from there before. */
FOLDER_TEST(ports_are_forwarded)
{
	struct packet_spec packet = {.source = server, .destination = outside, .source_port = 9,
				     .destination_port = 443, .protocol = IPPROTO_TCP,
				     .tcp_flags = RTE_TCP_SYN_FLAG, .from = NF_OUTSIDE};
	struct ends came, left;
	struct packet_spec back;

	write_file("file", "tcp 203.0.113.0:443 10.0.0.1:8443 # web\nudp 203.0.113.0:2000 10.0.0.9:53\n");
	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}, {"forwards", .text = "file"});
	for (uint64_t time = 1; time < 100000 * SECOND; time += 50000 * SECOND) {
		came = offered(rig, &packet, time);
		assert_int_equal(came.destination, host);
		assert_int_equal(came.destination_port, 8443);
		back = reply_of(&packet, came);
		back.from = NF_INSIDE;
		left = offered(rig, &back, time + 1);
		assert_int_equal(left.source, outside);
		assert_int_equal(left.source_port, 443);
	}
	packet.destination_port = 444;
	rig_frees(rig, packet_from_spec(rig, &packet), 1);
	unlink("file");
}

/* All packets of a host leave from the external address of its forwards. */
FOLDER_TEST(a_host_keeps_the_address_of_its_forwards)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, 50};

	for (uint32_t address = 0; address < 4; address++) {
		char line[64];

		snprintf(line, sizeof(line), "tcp 203.0.113.%u:443 10.0.0.1:8443\n", address);
		write_file("file", line);
		RIG_MAKE(rig, "NAT", {"addresses", 4}, {"sessions", 64}, {"forwards", .text = "file"});
		for (size_t i = 0; i < RTE_DIM(protocols); i++) {
			struct packet_spec packet = udp;

			packet.protocol = protocols[i];
			rig_offer(rig, packet_from_spec(rig, &packet), 1);
			assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->src_addr),
					 outside + address);
		}
	}
	unlink("file");
}

/* No other mapping gets a forwarded port. */
FOLDER_TEST(forwarded_ports_are_of_no_other_host)
{
	struct packet_spec packet = udp;

	write_file("file", "udp 203.0.113.0:2001 10.0.0.9:53\n");
	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 65536}, {"host_ports", 64512},
		 {"forwards", .text = "file"});
	for (uint32_t i = 0; i < 40000; i++) {
		packet.source_port = (uint16_t)(2 * i + 1);
		packet.source = host + i / 30000;
		rig_offer(rig, packet_from_spec(rig, &packet), 1);
		if (rig->out.n == 1)
			assert_int_not_equal(ends_of(rig_sent(rig)).source_port, 2001);
	}
	unlink("file");
}

/* All faults of a file are named. */
FOLDER_TEST(wrong_forwards_are_refused)
{
	(void)rig;
	write_file("file", "sctp 203.0.113.0:1 10.0.0.1:1\ntcp 203.0.113.0 10.0.0.1:1\n"
			   "tcp 203.0.113.0:1\nudp 203.0.114.0:1 10.0.0.1:1\n"
			   "udp 203.0.113.1:1 10.0.0.0/8:1\nudp 203.0.113.1:65536 10.0.0.1:1\n"
			   "tcp 203.0.113.0:1 10.0.0.1:1\ntcp 203.0.113.0:1 10.0.0.2:1\n"
			   "tcp 203.0.113.0:2 10.0.0.1:1\ntcp 203.0.113.1:2 10.0.0.1:2\n");
	assert_string_equal(
		refusal("NAT", SETTINGS({"addresses", 2}, {"forwards", .text = "file"})),
		"file:1: sctp: neither tcp nor udp\n"
		"file:2: 203.0.113.0: without a port from 1 to 65535\n"
		"file:3: 2 words, not 3\n"
		"file:4: 203.0.114.0:1: not an external address of the NAT\n"
		"file:5: 10.0.0.0/8: not an address\n"
		"file:6: 203.0.113.1:65536: without a port from 1 to 65535\n"
		"file:8: 203.0.113.0:1: forwarded already\n"
		"file:9: 10.0.0.1:1: has another external endpoint already\n"
		"file:10: 10.0.0.1:2: has forwards of another external address\n"
		"hint: PROTOCOL EXTERNAL:PORT INSIDE:PORT, as `tcp 203.0.113.1:443 "
		"10.0.0.5:8443`\n");
}
