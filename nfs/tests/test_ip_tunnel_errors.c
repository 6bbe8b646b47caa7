/* ICMP errors of routers within a tunnel (RFC 2003, sections 4 and 5). */
#include "tests/tunnel_rig.h"

static const struct packet_spec big = {.source = RTE_IPV4(10, 0, 0, 9),
				       .destination = RTE_IPV4(203u, 0, 113, 5),
				       .protocol = IPPROTO_TCP,
				       .fragment = RTE_IPV4_HDR_DF_FLAG,
				       .payload_length = 1400};

/* An error about a packet that was sent, which quotes `quoted` bytes of it. */
static struct rte_mbuf *error_about(struct rig *rig, struct rte_mbuf *sent, uint8_t type,
				    uint8_t code, uint16_t mtu, uint16_t quoted)
{
	uint8_t message[600] = {0};
	struct rte_mbuf *error;
	struct rte_icmp_hdr *icmp;

	memcpy(message, ipv4_of(sent), quoted);
	error = packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(192u, 0, 2, 77),
							    .destination = TUNNEL_LOCAL,
							    .protocol = IPPROTO_ICMP,
							    .payload = message,
							    .payload_length = quoted,
							    .from = NF_OUTSIDE});
	icmp = (struct rte_icmp_hdr *)(ipv4_of(error) + 1);
	icmp->icmp_type = type;
	icmp->icmp_code = code;
	icmp->icmp_ident = 0;
	icmp->icmp_seq_nb = rte_cpu_to_be_16(mtu);
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + quoted);
	return error;
}

/* Offer a packet that is encapsulated, then the error about it. */
static void offer_error(struct rig *rig, uint8_t type, uint8_t code, uint16_t mtu, uint16_t quoted)
{
	struct rte_mbuf *error;

	rig_offer(rig, packet_from_spec(rig, &big), 1);
	error = error_about(rig, rig_sent(rig), type, code, mtu, quoted);
	rig_offer(rig, error, 2);
}

static const struct rte_icmp_hdr *icmp_sent(struct rig *rig)
{
	const struct rte_ipv4_hdr *ip = ipv4_of(rig_sent(rig));

	assert_header_checksum(rig_sent(rig));
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	assert_int_equal(rte_be_to_cpu_32(ip->src_addr), TUNNEL_LOCAL);
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), big.source);
	assert_int_equal(rte_raw_cksum(ip + 1, rte_be_to_cpu_16(ip->total_length) - 20), 0xffff);
	return (const struct rte_icmp_hdr *)(ip + 1);
}

/* The sender learns the MTU of the packet in the tunnel's, whose headers the error quotes. */
RIG_TEST(too_big_is_relayed_with_the_inner_mtu)
{
	const struct rte_icmp_hdr *icmp;
	const struct rte_ipv4_hdr *quoted;

	rig_make(rig, "IPTunnel", NULL, 0);
	offer_error(rig, 3, 4, 1280, 48);
	icmp = icmp_sent(rig);
	assert_int_equal(icmp->icmp_type << 8 | icmp->icmp_code, 0x0304);
	assert_int_equal(rte_be_to_cpu_16(icmp->icmp_seq_nb), 1260);
	quoted = (const struct rte_ipv4_hdr *)(icmp + 1);
	assert_int_equal(quoted->next_proto_id, IPPROTO_TCP);
	assert_int_equal(rte_be_to_cpu_32(quoted->dst_addr), big.destination);
	assert_counts(rig, {"tunnel_errors", 1}, {"errors_sent", 1}, {"foreign", 0});
}

/* Later packets are answered by the tunnel itself, for ten minutes; a larger MTU changes nothing. */
RIG_TEST(the_mtu_holds_for_later_packets)
{
	rig_make(rig, "IPTunnel", NULL, 0);
	offer_error(rig, 3, 4, 1280, 28); /* too little for the inner header */
	assert_int_equal(rig->out.n, 0);
	rig_offer(rig, packet_from_spec(rig, &big), 3);
	assert_int_equal(rte_be_to_cpu_16(icmp_sent(rig)->icmp_seq_nb), 1260);
	rig_offer(rig, packet_from_spec(rig, &big), 599 * SECOND);
	assert_int_equal(rig_count(rig, "too_big"), 2);
	rig_offer(rig, packet_from_spec(rig, &big), 601 * SECOND);
	assert_int_equal(rig_count(rig, "encapsulated"), 2);
	rig_offer(rig, error_about(rig, rig_sent(rig), 3, 4, 4000, 48), 602 * SECOND);
	rig_offer(rig, packet_from_spec(rig, &big), 603 * SECOND);
	assert_int_equal(rig_count(rig, "encapsulated"), 3);
}

/* A router that names no MTU means the next plateau of RFC 1191; one below IPv4's least means that. */
RIG_TEST(mtus_that_are_not_named_are_estimated)
{
	static const struct {
		uint16_t named, inner;
	} cases[] = {{0, 1006 - 20}, {68, 68}, {90, 70}};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig_make(rig, "IPTunnel", NULL, 0);
		offer_error(rig, 3, 4, cases[i].named, 48);
		assert_int_equal(rte_be_to_cpu_16(icmp_sent(rig)->icmp_seq_nb), cases[i].inner);
	}
}

/* Each kind of error becomes what RFC 2003 says, or nothing. */
RIG_TEST(errors_are_translated)
{
	static const struct {
		uint8_t type, code;
		int becomes; /* type and code; -1: nothing */
	} cases[] = {
		{3, 0, 0x0300}, {3, 1, 0x0301}, {3, 2, 0x0300},  {3, 3, -1}, {3, 5, -1},
		{3, 13, 0x0301}, {4, 0, -1},    {5, 1, -1},      {12, 0, -1}, {11, 0, 0x0301},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig_make(rig, "IPTunnel", NULL, 0);
		offer_error(rig, cases[i].type, cases[i].code, 0, 48);
		assert_int_equal(rig->out.n, cases[i].becomes >= 0);
		if (rig->out.n == 1)
			assert_int_equal(icmp_sent(rig)->icmp_type << 8 |
						 icmp_sent(rig)->icmp_code,
					 cases[i].becomes);
		assert_counts(rig, {"tunnel_errors", 1}, {"errors_sent", rig->out.n},
			      {"errors_suppressed", !rig->out.n});
	}
}

/* An error about a packet that is not of this tunnel, or with a wrong checksum, is foreign. */
RIG_TEST(errors_about_others_are_foreign)
{
	for (int wrong = 0; wrong < 4; wrong++) {
		struct rte_ipv4_hdr *quoted;
		struct rte_mbuf *error;

		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, packet_from_spec(rig, &big), 1);
		quoted = ipv4_of(rig_sent(rig));
		if (wrong == 0)
			quoted->next_proto_id = IPPROTO_GRE;
		else if (wrong == 1)
			quoted->src_addr++;
		else if (wrong == 2)
			quoted->dst_addr++;
		header_checksum_set(quoted);
		error = error_about(rig, rig_sent(rig), 3, 4, 1280, 48);
		if (wrong == 3)
			rte_pktmbuf_mtod(error, uint8_t *)[60] ^= 1;
		rig_frees(rig, error, 2);
		assert_int_equal(rig_count(rig, "foreign"), 1);
	}
}
