#include "core/random.h"
#include "tables/filters.h"
#include "tests/files.h"
#include "tests/hostile.h"
#include "tests/ipv6.h"
#include "tests/refusal.h"
#include "tests/udp.h"

static bool prefix_covers(const struct prefix *prefix, uint32_t address)
{
	return prefix->depth == 0 || (address ^ prefix->address) >> (32 - prefix->depth) == 0;
}

static bool range_covers(const struct port_range *range, uint16_t port)
{
	return range->low <= port && port <= range->high;
}

/* The decision of the first matching filter, by linear search; -1 without a match. */
static int verdict_by_search(const struct filter *filters, int n,
			     const struct packet_spec *packet_spec)
{
	const bool ports = packet_spec->protocol != IPPROTO_ICMP;

	for (int i = 0; i < n; i++)
		if (prefix_covers(&filters[i].source, packet_spec->source) &&
		    prefix_covers(&filters[i].destination, packet_spec->destination) &&
		    range_covers(&filters[i].source_ports, ports ? packet_spec->source_port : 0) &&
		    range_covers(&filters[i].destination_ports,
				 ports ? packet_spec->destination_port : 0) &&
		    (filters[i].protocol == 0 || filters[i].protocol == packet_spec->protocol))
			return filters[i].permit;
	return -1;
}

/* A packet that matches the filter, or nearly does. */
static struct packet_spec near(const struct filter *filter, uint64_t *random)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};
	struct packet_spec packet_spec = {
		.source = filter->source.address |
			  (uint32_t)(random_next(random) >> 33) >> filter->source.depth % 32,
		.destination = filter->destination.address,
		.source_port = filter->source_ports.low + random_below(random, 2),
		.destination_port = filter->destination_ports.low + random_below(random, 2),
		.protocol = filter->protocol,
	};

	if (random_below(random, 8) == 0)
		packet_spec.destination ^= 1u << random_below(random, 32);
	if (packet_spec.protocol == 0 || random_below(random, 8) == 0)
		packet_spec.protocol = protocols[random_below(random, RTE_DIM(protocols))];
	return packet_spec;
}

/* Of 1,000 filters the first match decides, as in a linear search. */
RIG_TEST(first_match_decides)
{
	enum { FILTERS = 1000 };
	static struct filter filters[FILTERS];
	uint64_t source = 3, random = 1, unmatched = 0, denied = 0;

	for (int i = 0; i < FILTERS; i++)
		filters[i] = filters_next(&source);
	RIG_MAKE(rig, "ACL", {"filters", FILTERS}, {"seed", 3});
	for (int i = 0; i < 10000; i++) {
		const struct packet_spec packet_spec =
			near(&filters[random_below(&random, FILTERS)], &random);
		const int verdict = verdict_by_search(filters, FILTERS, &packet_spec);

		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(rig->out.n, verdict != 0);
		unmatched += verdict < 0;
		denied += verdict == 0;
	}
	assert_counts(rig, {"unmatched", unmatched}, {"denied", denied},
		      {"permitted", 10000 - denied});
	assert_in_range(unmatched, 100, 9000);
	assert_in_range(denied, 100, 9000);
}

/* Without a matching filter, or without filters, the default decides. */
RIG_TEST(default_decides_without_a_match)
{
	for (int filters = 0; filters < 200; filters += 100)
		for (int permit = 0; permit < 2; permit++) {
			const struct nf_setting settings[] = {{"filters", filters},
							      {"default_permit", permit}};

			rig_make(rig, "ACL", settings, 2);
			rig_offer(rig, packet_from_spec(rig, &udp), 1);
			assert_int_equal(rig->out.n, permit);
			assert_int_equal(rig_count(rig, "unmatched"), 1);
			assert_int_equal(rig_count(rig, permit ? "permitted" : "denied"), 1);
		}
}

/* Each packet of a burst is decided by itself, and packets keep their order. */
RIG_TEST(bursts_keep_their_order)
{
	struct rte_mbuf *burst[NF_BURST];
	uint64_t source = 1, random = 2;
	struct filter filters[NF_BURST];
	uint16_t last = 0;

	for (int i = 0; i < NF_BURST; i++) {
		struct packet_spec packet_spec;

		filters[i] = filters_next(&source);
		packet_spec = near(&filters[i], &random);
		packet_spec.id = i + 1;
		burst[i] = packet_from_spec(rig, &packet_spec);
	}
	rig_make(rig, "ACL", NULL, 0);
	rig_offer_burst(rig, burst, NF_BURST, 1);
	assert_int_equal(rig->out.n + rig_count(rig, "denied"), NF_BURST);
	assert_in_range(rig_count(rig, "denied"), 1, NF_BURST - 1);
	for (uint32_t i = 0; i < rig->out.n; i++) {
		const struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(rig->out.packets[i], struct rte_ipv4_hdr *, 14);

		assert_true(rte_be_to_cpu_16(ip->packet_id) > last);
		last = rte_be_to_cpu_16(ip->packet_id);
	}
}

/* A frame that begins with words, in pairs of bytes, behind its MAC addresses. */
static struct rte_mbuf *frame_of(struct rig *rig, const uint16_t *words, size_t n)
{
	uint8_t bytes[60] = {0};

	for (size_t i = 0; i < n; i++) {
		bytes[12 + 2 * i] = (uint8_t)(words[i] >> 8);
		bytes[13 + 2 * i] = (uint8_t)words[i];
	}
	return packet_of(rig, bytes, sizeof(bytes));
}

/* Frames that cannot be read are dropped unless `unknown` is pass; ARP passes unless `arp` is drop. */
RIG_TEST(what_is_not_understood_is_dropped)
{
	static const uint16_t frames[][6] = {
		{0x9100, 7, 0x0800},             /* an outer tag of another type */
		{0x8100, 7, 0x8100, 8, 0x8100},  /* three tags */
		{0x88cc}, {0x0026}, {0x8847, 1}, /* LLDP, a length, MPLS */
		{0x0806}, {0x8100, 7, 0x0806},   /* ARP */
	};
	const size_t unknown = 5;

	for (int set = 0; set < 2; set++) {
		RIG_MAKE(rig, "ACL", {"filters", 0}, {"unknown", .text = set ? "pass" : "drop"},
			 {"arp", .text = set ? "drop" : "pass"});
		for (size_t i = 0; i < RTE_DIM(frames); i++) {
			rig_offer(rig, frame_of(rig, frames[i], 6), 1);
			assert_int_equal(rig->out.n, set ? i < unknown : i >= unknown);
		}
		assert_counts(rig, {"other", set ? 5 : 2}, {"unknown", set ? 2 : 5});
	}
}

/* Words other than pass and drop are refused. */
RIG_TEST(other_words_are_refused)
{
	assert_non_null(refusal("ACL", SETTINGS({"unknown", .text = "deny"})));
}

/* What a filter does to UDP of IPv4, and of IPv6. */
static void check_families(struct rig *rig, const char *filters, bool permits, bool permits_ipv6)
{
	const struct ipv6_spec udp_ipv6 = {.source = 1, .destination = 2, .destination_port = 53};

	write_file("file", filters);
	RIG_MAKE(rig, "ACL", {"file", .text = "file"}, {"default_permit", 1});
	rig_offer(rig, packet_from_spec(rig, &udp), 1);
	assert_int_equal(rig->out.n, permits);
	rig_offer(rig, ipv6_packet(rig, &udp_ipv6), 1);
	assert_int_equal(rig->out.n, permits_ipv6);
}

/* `ip` and protocols are of both families, `ipv4`, `ipv6` and addresses of one. */
FOLDER_TEST(filters_are_of_both_families_or_of_one)
{
	check_families(rig, "deny ip any any\n", false, false);
	check_families(rig, "deny udp any any\n", false, false);
	check_families(rig, "deny 17 any any\n", false, false);
	check_families(rig, "deny ipv4 any any\n", false, true);
	check_families(rig, "deny ip 0.0.0.0/0 any\n", false, true);
	check_families(rig, "deny ipv6 any any\n", true, false);
	check_families(rig, "deny ip any ::/0\n", true, false);
	check_families(rig, "deny udp 2001:db8::1 2001:db8::/96 53\n", true, false);
	check_families(rig, "deny udp 2001:db8::2 any\n", true, true);
	check_families(rig, "permit ipv6 any any\ndeny ip any any\n", false, true);
}

/* A filter is not of two families, and has no bits beyond a prefix of IPv6. */
FOLDER_TEST(filters_of_two_families_are_refused)
{
	write_file("file", "deny ip 10.0.0.0/8 ::/0\ndeny ipv4 ::1 any\ndeny icmp ::1 any\n"
			   "deny ip 2001:db8::1/64 any\ndeny ip 2001::x any\ndeny ip ::/129 any\n");
	assert_string_equal(
		refusal("ACL", SETTINGS({"file", .text = "file"})),
		"file:1: ::/0: the filter is of IPv4\n"
		"file:2: ::1: the filter is of IPv4\n"
		"file:3: ::1: the filter is of IPv4\n"
		"file:4: 2001:db8::1/64: bits beyond the prefix are set, other than in "
		"2001:db8::/64\n"
		"file:5: 2001::x: not an IPv6 address\n"
		"file:6: ::/129: a prefix length is from 0 to 128\n"
		"hint: permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS], as `permit tcp "
		"10.0.0.0/8 any 443`\n");
}

static void is_valid(struct rte_mbuf *passed)
{
	assert_int_not_equal(packet_parse(passed).type, PACKET_MALFORMED);
}

/* No malformed packet passes; each IPv4 packet is permitted or denied. */
RIG_TEST(hostile_packets_are_permitted_or_denied)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1), RTE_IPV4(20, 0, 0, 1)};

	rig_make(rig, "ACL", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "permitted"), 0);
	assert_int_equal(rig->out.n, 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), is_valid);
	assert_true(rig_count(rig, "permitted") > 1000);
	assert_true(rig_count(rig, "denied") > 0);
}
