#include "tests/hostile.h"
#include "tests/ipv6.h"

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(192, 0, 2, 1),
				       .source_port = 40000,
				       .destination_port = 9,
				       .payload_length = 8};

static uint8_t service_sent(struct rig *rig)
{
	assert_int_equal(rig->out.n, 1);
	assert_true(checksums_right(rig->out.packets[0]));
	return rte_pktmbuf_mtod_offset(rig->out.packets[0], struct rte_ipv4_hdr *, 14)
		->type_of_service;
}

static const struct {
	uint8_t protocol;
	uint16_t port;
	const char *class;
	uint8_t codepoint;
} cases[] = {
	{IPPROTO_UDP, 20000, "telephony", 46}, {IPPROTO_UDP, 5060, "signaling", 40},
	{IPPROTO_TCP, 5061, "signaling", 40},  {IPPROTO_TCP, 443, "low_latency", 18},
	{IPPROTO_UDP, 443, "low_latency", 18}, {IPPROTO_TCP, 80, "low_latency", 18},
	{IPPROTO_UDP, 80, "standard", 0},      {IPPROTO_TCP, 25, "bulk", 10},
	{IPPROTO_TCP, 20000, "standard", 0},   {IPPROTO_UDP, 53, "management", 16},
	{IPPROTO_ICMP, 0, "management", 16},   {47, 0, "standard", 0},
};

/* A flow's protocol and ports decide its class, and the class its codepoint. */
RIG_TEST(ports_decide_the_class)
{
	for (size_t i = 0; i < 2 * RTE_DIM(cases); i++) {
		const size_t at = i / 2;
		struct packet_spec packet_spec = udp;

		packet_spec.protocol = cases[at].protocol;
		packet_spec.destination_port = cases[at].port;
		if (i % 2)
			RTE_SWAP(packet_spec.source_port, packet_spec.destination_port);
		rig_make(rig, "FlowClassifier", NULL, 0);
		for (uint64_t packets = 1; packets <= 3; packets++) {
			rig_offer(rig, packet_from_spec(rig, &packet_spec), packets);
			assert_int_equal(service_sent(rig), cases[at].codepoint << 2);
			assert_int_equal(rig_count(rig, cases[at].class), packets);
		}
		assert_counts(rig, {"started", 1}, {"packets", 3});
	}
}

/* Packets of new and known flows in one burst get their class and keep their order. */
RIG_TEST(mixed_bursts_keep_their_order)
{
	struct rte_mbuf *burst[2 * RTE_DIM(cases)];

	for (size_t i = 0; i < RTE_DIM(burst); i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.protocol = cases[i / 2].protocol;
		packet_spec.destination_port = cases[i / 2].port;
		packet_spec.id = (uint16_t)i;
		burst[i] = packet_from_spec(rig, &packet_spec);
	}
	rig_make(rig, "FlowClassifier", NULL, 0);
	rig_offer_burst(rig, burst, RTE_DIM(burst), 1);
	assert_int_equal(rig->out.n, RTE_DIM(burst));
	for (size_t i = 0; i < RTE_DIM(burst); i++) {
		const struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(rig->out.packets[i], struct rte_ipv4_hdr *, 14);

		assert_int_equal(rte_be_to_cpu_16(ip->packet_id), i);
		assert_int_equal(ip->type_of_service, cases[i / 2].codepoint << 2);
	}
	assert_int_equal(rig_count(rig, "started"), RTE_DIM(cases));
}

/* Only the codepoint changes: ECN bits stay, and with marking off nothing changes. */
RIG_TEST(marks_only_the_codepoint)
{
	const struct nf_setting settings[] = {{"mark", 0}};

	for (int marking = 0; marking < 2; marking++) {
		struct rte_mbuf *packet = packet_from_spec(rig, &udp);
		struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, 14);

		ip->type_of_service = 0xff;
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		rig_make(rig, "FlowClassifier", settings, !marking);
		rig_offer(rig, packet, 1);
		assert_int_equal(service_sent(rig), marking ? 0x03 : 0xff);
		assert_int_equal(rig_count(rig, "standard"), 1);
	}
}

/* With a full table, packets of further flows are still classified. */
RIG_TEST(full_table_still_classifies)
{
	RIG_MAKE(rig, "FlowClassifier", {"flows", 8});
	for (uint32_t flow = 0; flow < 200; flow++) {
		struct packet_spec packet_spec = udp;

		packet_spec.source += flow;
		packet_spec.destination_port = 53;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(service_sent(rig), 16 << 2);
	}
	assert_int_equal(rig_count(rig, "management"), 200);
	assert_true(rig_count(rig, "untracked") > 100);
}

/* A removed flow's slot can be used by a flow of another class. */
RIG_TEST(slots_are_reused)
{
	RIG_MAKE(rig, "FlowClassifier", {"flows", 8}, {"timeout_s", 1});
	for (uint64_t i = 0; i < 1000; i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.source += (uint32_t)i;
		packet_spec.protocol = cases[i % RTE_DIM(cases)].protocol;
		packet_spec.destination_port = cases[i % RTE_DIM(cases)].port;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), (i + 1) * SECOND);
		assert_int_equal(service_sent(rig), cases[i % RTE_DIM(cases)].codepoint << 2);
	}
	assert_int_equal(rig_count(rig, "untracked"), 0);
	assert_true(rig_count(rig, "aged") > 900);
}

/*
 * A tagged packet is classified by its IPv4 header; non-initial fragments are of the standard
 * class; IPv6 is marked in its traffic class.
 */
RIG_TEST(tags_fragments_and_ipv6)
{
	struct packet_spec tagged = udp, fragment = udp;
	struct rte_mbuf *six = ipv6_packet(rig, &(struct ipv6_spec){.destination_port = 53});

	tagged.vlan = 5;
	tagged.destination_port = 53;
	fragment.fragment = 10;
	rig_make(rig, "FlowClassifier", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	assert_true(checksums_right(rig->out.packets[0]));
	assert_int_equal(rte_pktmbuf_mtod(rig->out.packets[0], uint8_t *)[19], 16 << 2);
	rig_offer(rig, packet_from_spec(rig, &fragment), 1);
	assert_int_equal(rig_count(rig, "standard"), 1);
	rig_offer(rig, six, 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rte_pktmbuf_mtod(rig->out.packets[0], const uint8_t *)[15] & 0xf0,
			 (16 << 2 & 15) << 4);
	assert_int_equal(rte_pktmbuf_mtod(rig->out.packets[0], const uint8_t *)[14],
			 0x60 | 16 << 2 >> 4);
	assert_int_equal(rig_count(rig, "management"), 2);
}

/* Sent packets are not malformed and, if IPv4, have the codepoint of a class. */
static void is_classified(struct rte_mbuf *passed)
{
	const struct packet packet = packet_parse(passed);
	uint8_t codepoint;

	assert_int_not_equal(packet.type, PACKET_MALFORMED);
	if (packet.type != PACKET_IPV4)
		return;
	codepoint = packet_ipv4(passed, &packet)->type_of_service >> 2;
	for (size_t i = 0; i < RTE_DIM(cases); i++)
		if (cases[i].codepoint == codepoint)
			return;
	fail_msg("codepoint %u is of no class", codepoint);
}

/* No malformed packet passes, and hostile IPv4 packets get a class. */
RIG_TEST(hostile_packets_get_a_class)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1), RTE_IPV4(10, 0, 0, 2)};

	rig_make(rig, "FlowClassifier", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "packets"), 0);
	assert_int_equal(rig->out.n, 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), is_classified);
	assert_true(rig_count(rig, "packets") > 1000);
}
