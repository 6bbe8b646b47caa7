#include "core/random.h"
#include "tables/filters.h"
#include "tests/hostile.h"
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

/* Other than IPv4 passes; a tagged packet is matched by its IPv4 header. */
RIG_TEST(other_than_ipv4_passes)
{
	struct packet_spec tagged = udp;
	struct rte_mbuf *six = packet_from_spec(rig, &udp);

	tagged.vlan = 7;
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	RIG_MAKE(rig, "ACL", {"default_permit", 0});
	rig_offer(rig, six, 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
	rig_frees(rig, packet_from_spec(rig, &tagged), 1);
	assert_int_equal(rig_count(rig, "denied"), 1);
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
