#include "core/split_hash.h"
#include "functions/lb/maglev.h"
#include "tests/hostile.h"
#include "tests/ipv6.h"
#include "tests/refusal.h"

#define VIRTUAL 0xc0000250u /* 192.0.2.80 */
#define BACKEND 0xc6120001u /* 198.18.0.1 */
#define CLIENT 0x0a000001u  /* 10.0.0.1 */

static const struct packet_spec udp = {.source = CLIENT,
				       .destination = VIRTUAL,
				       .source_port = 1000,
				       .destination_port = 53,
				       .payload_length = 32};

static struct nf *make(struct rig *rig, double backends, const char *down)
{
	const struct nf_setting settings[] = {
		{"backends", backends}, {"down", .text = down}, {"address", VIRTUAL}};

	return rig_make(rig, "LB", settings, RTE_DIM(settings));
}

static struct nf *make_with_gates(struct rig *rig, double backends, const char *down)
{
	const struct nf_setting settings[] = {
		{"backends", backends}, {"down", .text = down}, {"gates", 1}};

	return rig_make(rig, "LB", settings, RTE_DIM(settings));
}

/* The backend to which a packet is sent. */
static uint32_t backend_of(struct rig *rig, const struct packet_spec *packet_spec)
{
	rig_offer(rig, packet_from_spec(rig, packet_spec), 1);
	assert_true(checksums_right(rig_sent(rig)));
	return rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->dst_addr) - BACKEND;
}

/* Every backend gets flows, and each flow one backend, whose address replaces the virtual one. */
RIG_TEST(a_flow_has_one_backend)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP};
	unsigned int flows[5] = {0};

	make(rig, 5, "");
	for (uint16_t flow = 0; flow < 1000; flow++) {
		struct packet_spec packet_spec = udp;
		uint32_t backend;

		packet_spec.source_port = flow;
		packet_spec.protocol = protocols[flow % 2];
		backend = backend_of(rig, &packet_spec);
		assert_in_range(backend, 0, 4);
		packet_spec.payload_length = 100;
		packet_spec.ttl = 3;
		assert_int_equal(backend_of(rig, &packet_spec), backend);
		flows[backend]++;
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(flows[i], 150, 250);
	assert_int_equal(rig_count(rig, "balanced"), 2000);
}

/* What a backend sends has the virtual address as its source again; other sources stay. */
RIG_TEST(packets_of_backends_come_from_the_virtual_address)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	struct packet_spec back = {.source_port = 53,
				   .destination = CLIENT,
				   .destination_port = 1000,
				   .payload_length = 20,
				   .from = NF_OUTSIDE};

	make(rig, 5, "1");
	for (uint32_t i = 0; i < 7; i++) {
		const uint32_t source = BACKEND - 1 + i;

		back.source = source;
		back.protocol = protocols[i % RTE_DIM(protocols)];
		rig_offer(rig, packet_from_spec(rig, &back), 1);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		assert_true(checksums_right(rig_sent(rig)));
		assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->src_addr),
				 i >= 1 && i <= 5 ? VIRTUAL : source);
	}
	assert_counts(rig, {"returned", 5}, {"passed", 2});
}

/* Packets to other addresses pass, and so does all that is not IPv4. */
RIG_TEST(other_packets_pass)
{
	struct packet_spec other = udp;
	struct rte_mbuf *six = packet_from_spec(rig, &udp);

	other.destination = VIRTUAL + 1;
	make(rig, 5, "");
	assert_int_equal(backend_of(rig, &other), VIRTUAL + 1 - BACKEND);
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_offer(rig, six, 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"passed", 1}, {"other", 1}, {"balanced", 0});
}

/* With gates, a flow of IPv6 has one backend, also in fragments, and flows are spread over all. */
RIG_TEST(flows_of_ipv6_are_balanced_by_gates)
{
	const uint8_t later[8] = {IPPROTO_UDP, 0, 0, 8}, first[8] = {IPPROTO_UDP, 0, 0, 1};
	struct ipv6_spec spec = {.source = 1, .destination = 2, .payload_length = 8};
	bool used[5] = {false};
	uint8_t gate;

	RIG_MAKE(rig, "LB", {"backends", 5}, {"gates", 1});
	for (spec.source_port = 1000; spec.source_port < 1100; spec.source_port++) {
		rig_offer(rig, ipv6_packet(rig, &spec), 1);
		gate = metadata_of(rig_sent(rig))->gate;
		used[gate - NF_BRANCH] = true;
		rig_offer(rig, ipv6_packet(rig, &spec), 1);
		assert_int_equal(metadata_of(rig_sent(rig))->gate, gate);
	}
	for (int i = 0; i < 5; i++)
		assert_true(used[i]);
	spec.first = 44;
	spec.extensions = first;
	spec.extension_bytes = sizeof(first);
	rig_offer(rig, ipv6_packet(rig, &spec), 1);
	gate = metadata_of(rig_sent(rig))->gate;
	spec.extensions = later;
	rig_offer(rig, ipv6_packet(rig, &spec), 1);
	assert_int_equal(metadata_of(rig_sent(rig))->gate, gate);
	assert_counts(rig, {"balanced", 202}, {"fragments", 2}, {"other", 0});
}

/* All fragments of a datagram reach one backend, with the checksum of the first one updated. */
RIG_TEST(fragments_stay_together)
{
	make(rig, 100, "");
	for (uint16_t id = 0; id < 100; id++) {
		struct packet_spec part = udp;
		struct rte_mbuf *first;
		struct rte_udp_hdr *header;
		rte_be16_t checksum;
		uint32_t backend;

		part.id = id;
		part.source = CLIENT + id;
		part.source_port = id;
		part.fragment = RTE_IPV4_HDR_MF_FLAG;
		first = packet_from_spec(rig, &part);
		header = (struct rte_udp_hdr *)(ipv4_of(first) + 1);
		header->dgram_cksum = 0;
		checksum = header->dgram_cksum = rte_ipv4_udptcp_cksum(ipv4_of(first), header);
		rig_offer(rig, first, 1);
		header = (struct rte_udp_hdr *)(ipv4_of(rig_sent(rig)) + 1);
		assert_int_not_equal(header->dgram_cksum, checksum);
		assert_int_equal(rte_ipv4_udptcp_cksum_verify(ipv4_of(rig_sent(rig)), header), 0);
		backend = rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->dst_addr) - BACKEND;
		part.fragment = 5;
		assert_int_equal(backend_of(rig, &part), backend);
	}
	assert_int_equal(rig_count(rig, "fragments"), 200);
}

/* With gates packets leave unchanged by the gate of the backend that a rewriting instance uses. */
RIG_TEST(gates_are_backends)
{
	uint32_t backends[200];

	for (int gates = 0; gates < 2; gates++) {
		struct nf *nf = gates ? make_with_gates(rig, 64, "3") : make(rig, 64, "3");

		assert_int_equal(nf_branches(nf), gates ? 64 : 0);
		for (uint16_t flow = 0; flow < 200; flow++) {
			struct packet_spec packet_spec = udp;

			packet_spec.source_port = flow;
			if (!gates) {
				backends[flow] = backend_of(rig, &packet_spec);
				continue;
			}
			backend_of(rig, &packet_spec);
			assert_int_equal(metadata_of(rig_sent(rig))->gate,
					 NF_BRANCH + backends[flow]);
			assert_int_equal(ipv4_of(rig_sent(rig))->dst_addr,
					 rte_cpu_to_be_32(VIRTUAL));
		}
	}
}

/* What has no flow leaves by the first gate that is up; from outside all go forward. */
RIG_TEST(packets_without_a_flow_have_a_gate_too)
{
	struct packet_spec back = udp;
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	back.from = NF_OUTSIDE;
	back.source = BACKEND;
	make_with_gates(rig, 4, "0,1");
	rig_offer(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
	assert_int_equal(metadata_of(rig_sent(rig))->gate, NF_BRANCH + 2);
	rig_offer(rig, packet_from_spec(rig, &back), 1);
	assert_int_equal(metadata_of(rig_sent(rig))->gate, NF_FORWARD);
	assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->src_addr), BACKEND);
}

/* Without a backend packets from inside are freed; those from outside still pass. */
RIG_TEST(without_backends_packets_are_freed)
{
	struct packet_spec back = udp;

	back.from = NF_OUTSIDE;
	for (int gates = 0; gates < 2; gates++) {
		if (gates)
			make_with_gates(rig, 2, "0,1");
		else
			make(rig, 2, "1,0");
		rig_frees(rig, packet_from_spec(rig, &udp), 1);
		assert_int_equal(rig_count(rig, "unserved"), 1);
		rig_offer(rig, packet_from_spec(rig, &back), 1);
		assert_int_equal(rig->out.n, 1);
	}
}

/* With a table of a power of two the entry is that of the split hash, salted by the seed. */
RIG_TEST(a_power_of_two_uses_the_split_hash)
{
	enum { TABLE = 256, BACKENDS = 5, SEED = 9 };
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, IPPROTO_GRE};
	const bool up[] = {true, true, true, true, true};
	uint16_t table[TABLE];

	assert_int_equal(maglev_fill(table, TABLE, up, BACKENDS, SEED), 0);
	RIG_MAKE(rig, "LB", {"backends", BACKENDS}, {"table", TABLE}, {"seed", SEED});
	for (uint16_t flow = 0; flow < 200; flow++) {
		struct packet_spec packet_spec = udp;
		const bool ports = flow % 4 < 2 && flow % 8 < 4;
		uint32_t value;

		packet_spec.source = CLIENT + flow;
		packet_spec.protocol = protocols[flow % 4];
		packet_spec.fragment = ports ? 0 : RTE_IPV4_HDR_MF_FLAG;
		value = split_hash_of(SEED, CLIENT + flow, VIRTUAL, ports ? 1000 << 16 | 53 : 0,
				      packet_spec.protocol);
		assert_int_equal(backend_of(rig, &packet_spec), table[value % TABLE]);
	}
}

static void refused(const struct nf_setting *settings, unsigned int n, const char *message)
{
	assert_string_equal(refusal("LB", settings, n), message);
}

/* Settings that contradict each other are refused, with what would do. */
TEST(wrong_settings_are_refused)
{
	refused((struct nf_setting[]){{"table", 65535}}, 1,
		"LB: table 65535 is neither a prime above 8 backends nor a power of two\n"
		"hint: 65537\n");
	refused((struct nf_setting[]){{"table", 131072}}, 1,
		"LB: table 131072 is neither a prime above 8 backends nor a power of two\n"
		"hint: 131101\n");
	refused((struct nf_setting[]){{"table", 7}}, 1,
		"LB: table 7 is neither a prime above 8 backends nor a power of two\n"
		"hint: 11\n");
	refused((struct nf_setting[]){{"backends", 65}, {"gates", 1}}, 2,
		"LB: there are 65 backends, but at most 64 gates\n");
	refused((struct nf_setting[]){{"address", BACKEND + 2}}, 1,
		"LB: address is that of backend 2\n");
	refused((struct nf_setting[]){{"down", .text = "1,8"}}, 1,
		"LB: down: there is no backend 8\nhint: from 0 to 7\n");
	refused((struct nf_setting[]){{"down", .text = "1,"}}, 1,
		"LB: down: \"1,\" is not a list of numbers\n"
		"hint: separate them by commas, without spaces: 2,5\n");
	refused((struct nf_setting[]){{"down", .text = "1,-2"}}, 1,
		"LB: down: \"-2\" is not a list of numbers\n"
		"hint: separate them by commas, without spaces: 2,5\n");
}

static void header_stays_right(struct rte_mbuf *sent)
{
	assert_int_not_equal(packet_parse(sent).type, PACKET_MALFORMED);
	if (sent->hash.usr)
		assert_header_checksum(sent);
}

/* Hostile packets are balanced, returned, passed or freed, and right checksums stay right. */
RIG_TEST(hostile_packets_are_handled)
{
	const uint32_t addresses[] = {VIRTUAL, BACKEND, BACKEND + 1, CLIENT};

	make(rig, 2, "");
	offer_malformed(rig);
	assert_true(rig_count(rig, "malformed") > 50);
	offer_hostile(rig, addresses, RTE_DIM(addresses), header_stays_right);
	assert_true(rig_count(rig, "balanced") > 200);
	assert_true(rig_count(rig, "returned") > 200);
	assert_true(rig_count(rig, "fragments") > 20);
	assert_true(rig_count(rig, "errors") > 0);
	make_with_gates(rig, 2, "");
	offer_hostile(rig, addresses, RTE_DIM(addresses), header_stays_right);
	assert_true(rig_count(rig, "balanced") > 1000);
}

/* ICMP errors through a load balancer. */

static uint32_t destination_of(struct rte_mbuf *packet)
{
	return rte_be_to_cpu_32(ipv4_of(packet)->dst_addr);
}

/* An ICMP error that quotes the bytes of a packet from its IPv4 header on. */
static struct rte_mbuf *error_about(struct rig *rig, struct rte_mbuf *packet, uint32_t source,
				    enum nf_side from)
{
	const struct packet_spec packet_spec = {
		.source = source,
		.destination = rte_be_to_cpu_32(ipv4_of(packet)->src_addr),
		.protocol = IPPROTO_ICMP,
		.payload = ipv4_of(packet),
		.payload_length = rte_pktmbuf_data_len(packet) - sizeof(struct rte_ether_hdr),
		.from = from,
	};
	struct rte_mbuf *error = packet_from_spec(rig, &packet_spec);
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ipv4_of(error) + 1);

	icmp->icmp_type = 3;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum =
		(uint16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + packet_spec.payload_length);
	return error;
}

static struct rte_ipv4_hdr *quoted_in(struct rte_mbuf *error)
{
	return (struct rte_ipv4_hdr *)((uint8_t *)(ipv4_of(error) + 1) +
				       sizeof(struct rte_icmp_hdr));
}

static void assert_quote_is_right(struct rte_mbuf *error)
{
	struct rte_ipv4_hdr *quoted = quoted_in(error);

	assert_true(checksums_right(error));
	assert_int_equal(rte_raw_cksum(quoted, sizeof(*quoted)), 0xffff);
	assert_int_equal(rte_ipv4_udptcp_cksum_verify(quoted, quoted + 1), 0);
}

/* An error about a backend's packet reaches that backend, which finds its address in the quote. */
RIG_TEST(errors_reach_the_backend_of_the_quoted_flow)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP};

	make(rig, 50, "");
	for (uint16_t flow = 0; flow < 100; flow++) {
		struct packet_spec to = udp, back = udp;
		struct rte_mbuf *quoted;
		uint32_t backend;

		to.source_port = back.destination_port = flow;
		to.protocol = back.protocol = protocols[flow % 2];
		back.source = VIRTUAL;
		back.destination = CLIENT;
		back.source_port = to.destination_port;
		rig_offer(rig, packet_from_spec(rig, &to), 1);
		backend = destination_of(rig_sent(rig));
		quoted = packet_from_spec(rig, &back);
		rig_offer(rig, error_about(rig, quoted, RTE_IPV4(10, 9, 9, 9), NF_INSIDE), 1);
		rte_pktmbuf_free(quoted);
		assert_int_equal(destination_of(rig_sent(rig)), backend);
		assert_int_equal(rte_be_to_cpu_32(quoted_in(rig_sent(rig))->src_addr), backend);
		assert_quote_is_right(rig_sent(rig));
	}
	assert_int_equal(rig_count(rig, "errors"), 100);
}

/* An error about a client's packet quotes what the client sent: to the virtual address. */
RIG_TEST(errors_from_outside_quote_the_virtual_address)
{
	const uint32_t router = RTE_IPV4(100, 64, 0, 1);

	make(rig, 50, "");
	for (int of_router = 0; of_router < 2; of_router++) {
		struct packet_spec sent = udp;
		struct rte_mbuf *quoted;

		sent.destination = BACKEND + 7;
		quoted = packet_from_spec(rig, &sent);
		rig_offer(rig,
			  error_about(rig, quoted, of_router ? router : BACKEND + 7, NF_OUTSIDE),
			  1);
		rte_pktmbuf_free(quoted);
		assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->src_addr),
				 of_router ? router : VIRTUAL);
		assert_int_equal(rte_be_to_cpu_32(quoted_in(rig_sent(rig))->dst_addr), VIRTUAL);
		assert_quote_is_right(rig_sent(rig));
	}
	assert_counts(rig, {"returned", 2}, {"errors", 2});
}

static void checksum_stays_right(struct rte_mbuf *sent)
{
	if (sent->hash.usr)
		assert_header_checksum(sent);
}

/* Errors with invalid quotes are handled, and right checksums stay right. */
RIG_TEST(mutated_errors_are_handled)
{
	struct packet_spec back = udp, to = udp;
	struct rte_mbuf *quoted[2], *errors[2];

	back.source = VIRTUAL;
	back.destination = CLIENT;
	to.destination = BACKEND + 1;
	to.protocol = IPPROTO_TCP;
	make(rig, 50, "");
	quoted[0] = packet_from_spec(rig, &back);
	quoted[1] = packet_from_spec(rig, &to);
	errors[0] = error_about(rig, quoted[0], CLIENT, NF_INSIDE);
	errors[1] = error_about(rig, quoted[1], BACKEND + 1, NF_OUTSIDE);
	rte_pktmbuf_free_bulk(quoted, 2);
	offer_mutations_of(rig, errors, 2, checksum_stays_right);
	assert_true(rig_count(rig, "errors") > 500);
}
