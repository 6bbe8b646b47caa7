/* ICMP errors through a load balancer. */
#include "tests/hostile.h"

#define VIRTUAL 0xc0000250u /* 192.0.2.80 */
#define BACKEND 0xc6120001u /* 198.18.0.1 */
#define CLIENT 0x0a000001u  /* 10.0.0.1 */

static const struct packet_spec udp = {.source = CLIENT,
				       .destination = VIRTUAL,
				       .source_port = 1000,
				       .destination_port = 53,
				       .payload_length = 32};

static void make(struct rig *rig)
{
	RIG_MAKE(rig, "LB", {"backends", 50}, {"address", VIRTUAL});
}

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

	make(rig);
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

	make(rig);
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

static void header_stays_right(struct rte_mbuf *sent)
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
	make(rig);
	quoted[0] = packet_from_spec(rig, &back);
	quoted[1] = packet_from_spec(rig, &to);
	errors[0] = error_about(rig, quoted[0], CLIENT, NF_INSIDE);
	errors[1] = error_about(rig, quoted[1], BACKEND + 1, NF_OUTSIDE);
	rte_pktmbuf_free_bulk(quoted, 2);
	offer_mutations_of(rig, errors, 2, header_stays_right);
	assert_true(rig_count(rig, "errors") > 500);
}
