#include "tests/hostile.h"
#include "tests/udp.h"

static const uint32_t here = RTE_IPV4(192, 0, 2, 254);

static const struct nf_setting no_routes[] = {{"routes", 0}, {"default_route", 0}};
static const struct nf_setting with_default[] = {{"routes", 0}, {"default_route", 1}};

static const struct rte_ipv4_hdr *ip_sent(struct rig *rig)
{
	return ipv4_of(rig_sent(rig));
}

/* Whether an ICMP error of that kind about the offered packet was sent to its source. */
static void assert_error(struct rig *rig, const struct packet_spec *about, uint8_t type,
			 uint8_t code)
{
	const struct rte_ipv4_hdr *ip = ip_sent(rig);
	const struct rte_icmp_hdr *icmp = (const struct rte_icmp_hdr *)(ip + 1);
	const struct rte_ipv4_hdr *quoted = (const struct rte_ipv4_hdr *)(icmp + 1);

	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(ip->next_proto_id, IPPROTO_ICMP);
	assert_int_equal(rte_be_to_cpu_32(ip->src_addr), here);
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), about->source);
	assert_int_equal(icmp->icmp_type, type);
	assert_int_equal(icmp->icmp_code, code);
	assert_int_equal(rte_be_to_cpu_32(quoted->dst_addr), about->destination);
	assert_int_equal(quoted->time_to_live, about->ttl ? about->ttl : 64);
	assert_int_equal(side_of(rig_sent(rig)), about->from);
	assert_int_equal(rig_count(rig, "errors_sent"), 1);
}

/* A packet with an expired time to live is freed, and an ICMP error is sent. */
RIG_TEST(reports_time_exceeded)
{
	struct packet_spec packet_spec = udp;

	packet_spec.ttl = 1;
	packet_spec.from = NF_OUTSIDE;
	rig_make(rig, "IPRouter", with_default, 2);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_error(rig, &packet_spec, 11, 0);
	assert_int_equal(rig_count(rig, "expired"), 1);
}

/* A packet without a route is freed, and an ICMP net unreachable is sent. */
RIG_TEST(reports_net_unreachable)
{
	rig_make(rig, "IPRouter", no_routes, 2);
	rig_offer(rig, packet_from_spec(rig, &udp), 1);
	assert_error(rig, &udp, 3, 0);
	assert_int_equal(rig_count(rig, "unroutable"), 1);
}

/* An error has at most 576 bytes, the tags of the packet, and quotes from all segments. */
RIG_TEST(errors_quote_at_most_576_bytes)
{
	struct packet_spec packet_spec = udp;
	uint8_t text[1000];
	struct rte_mbuf *packet;

	for (int i = 0; i < 1000; i++)
		text[i] = (uint8_t)i;
	packet_spec.payload = text;
	packet_spec.payload_length = sizeof(text);
	packet_spec.vlan = 9;
	rig_make(rig, "IPRouter", no_routes, 2);
	rig_offer(rig, in_two(rig, packet_from_spec(rig, &packet_spec), 300), 1);
	packet = rig_sent(rig);
	assert_int_equal(rte_pktmbuf_pkt_len(packet), 18 + 576);
	assert_true(checksums_right(packet));
	assert_memory_equal(rte_pktmbuf_mtod_offset(packet, uint8_t *, 18 + 28 + 28), text,
			    576 - 28 - 28);
}

/* An error is sent about a truncated TCP header, but not about a truncated ICMP message. */
RIG_TEST(reports_truncated_tcp_but_not_icmp)
{
	struct packet_spec packet_spec = udp;

	rig_make(rig, "IPRouter", no_routes, 2);
	for (int icmp = 0; icmp < 2; icmp++) {
		struct rte_mbuf *packet;

		packet_spec.protocol = icmp ? IPPROTO_ICMP : IPPROTO_TCP;
		packet = packet_from_spec(rig, &packet_spec);
		ipv4_of(packet)->total_length = RTE_BE16(20 + 4);
		header_checksum_set(ipv4_of(packet));
		rig_offer(rig, packet, 1);
		assert_int_equal(rig->out.n, !icmp);
	}
	assert_counts(rig, {"errors_sent", 1}, {"errors_suppressed", 1});
}

/* No error is sent about errors, non-initial fragments, and packets from or to no single host. */
RIG_TEST(no_errors_about_errors_or_fragments)
{
	struct packet_spec fragment = udp, icmp = udp;
	struct rte_mbuf *error;

	fragment.fragment = 10;
	icmp.protocol = IPPROTO_ICMP;
	rig_make(rig, "IPRouter", no_routes, 2);
	rig_frees(rig, packet_from_spec(rig, &fragment), 1);
	for (int type = 0; type < 20; type++) {
		error = packet_from_spec(rig, &icmp);
		*rte_pktmbuf_mtod_offset(error, uint8_t *, 34) = (uint8_t)type;
		rig_offer(rig, error, 1);
		assert_int_equal(rig->out.n, !(type == 3 || type == 4 || type == 5 || type == 11 ||
					       type == 12));
	}
	assert_int_equal(rig_count(rig, "errors_suppressed"), 1 + 5);
}

/* After an initial burst, errors are sent at the configured rate. */
RIG_TEST(errors_are_rate_limited)
{
	RIG_MAKE(rig, "IPRouter", {"routes", 0}, {"default_route", 0}, {"errors_per_s", 10},
		 {"errors_at_once", 5});
	for (int i = 0; i < 100; i++)
		rig_offer(rig, packet_from_spec(rig, &udp), 1000000);
	assert_counts(rig, {"errors_sent", 5}, {"errors_limited", 95});
	for (int i = 1; i <= 300; i++)
		rig_offer(rig, packet_from_spec(rig, &udp), 1000000 + i * 10000);
	assert_in_range(rig_count(rig, "errors_sent"), 5 + 29, 5 + 30);
}
