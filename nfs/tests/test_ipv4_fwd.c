/* IPv4Fwd: next hops by longest prefix, times to live and checksums, and what is freed. */
#include "tests/files.h"
#include "tests/hostile.h"
#include "tests/refusal.h"
#include "tests/udp.h"

static void make(struct rig *rig, const char *routes)
{
	write_file("file", routes);
	RIG_MAKE(rig, "IPv4Fwd", {"file", .text = "file"});
}

/* Offer a packet to a destination; the number of its next hop, or -1. */
static int hop_of(struct rig *rig, uint32_t destination)
{
	struct packet_spec packet_spec = udp;
	const struct rte_ether_hdr *ethernet;

	packet_spec.destination = destination;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	if (rig->out.n == 0)
		return -1;
	ethernet = rte_pktmbuf_mtod(rig_sent(rig), const struct rte_ether_hdr *);
	assert_memory_equal(&ethernet->src_addr, ((uint8_t[]){2, 0, 0, 0, 0, 1}), 6);
	assert_memory_equal(&ethernet->dst_addr, ((uint8_t[]){2, 0, 0, 1, 0}), 5);
	return ethernet->dst_addr.addr_bytes[5];
}

/* The longest prefix chooses the hop, whatever the order of the lines; without one packets go. */
FOLDER_TEST(the_longest_prefix_chooses_the_hop)
{
	make(rig, "10.0.0.0/8 1\n10.1.0.0/16 2\n10.1.2.3/32 255\n10.1.2.0/26 4\n");
	assert_true(nf_count_rules(rig->nf));
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 9, 9, 9)), 1);
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 9, 9)), 2);
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 2, 3)), 255);
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 2, 4)), 4);
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 2, 64)), 2);
	assert_int_equal(hop_of(rig, RTE_IPV4(11, 0, 0, 1)), -1);
	assert_counts(rig, {"forwarded", 5}, {"unroutable", 1});
	assert_memory_equal(rig->nf->rule_counts, ((uint64_t[]){1, 2, 1, 1}), 4 * sizeof(uint64_t));
	make(rig, "10.1.0.0/16 2\n0.0.0.0/0 0\n");
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 9, 9)), 2);
	assert_int_equal(hop_of(rig, 0xe0000005), 0); /* no address is special */
}

/* Routes are counted by their number in the file, also where there are thousands. */
FOLDER_TEST(many_routes_are_counted)
{
	char routes[3000 * 24];
	size_t length = 0;

	for (unsigned int i = 0; i < 3000; i++)
		length += (size_t)snprintf(routes + length, sizeof(routes) - length,
					   "10.%u.%u.128/25 %u\n", 15 - i / 256, i % 256, i % 256);
	make(rig, routes);
	assert_true(nf_count_rules(rig->nf));
	for (unsigned int i = 0; i < 3000; i += 100) {
		assert_int_equal(hop_of(rig, RTE_IPV4(10, 15 - i / 256, i % 256, 200)), i % 256);
		assert_int_equal(rig->nf->rule_counts[i], 1);
	}
	assert_int_equal(hop_of(rig, RTE_IPV4(10, 1, 0, 1)), -1);
}

/* The time to live is one less, with right checksums; a packet with 1 or 0 left is freed. */
FOLDER_TEST(times_to_live_end)
{
	struct packet_spec packet_spec = udp;

	make(rig, "0.0.0.0/0 3\n");
	for (unsigned int ttl = 1; ttl < 256; ttl++) {
		packet_spec.ttl = (uint8_t)ttl;
		packet_spec.id = (uint16_t)(ttl * 257);
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(rig->out.n, ttl > 1);
		if (ttl == 1)
			continue;
		assert_int_equal(ipv4_of(rig_sent(rig))->time_to_live, ttl - 1);
		assert_true(checksums_right(rig_sent(rig)));
	}
	assert_int_equal(rig_count(rig, "expired"), 1);
}

/* Only IPv4 is forwarded, also behind a tag; no error is sent about anything. */
FOLDER_TEST(other_packets_are_freed)
{
	struct packet_spec tagged = udp;
	struct rte_mbuf *six = packet_from_spec(rig, &udp);

	make(rig, "0.0.0.0/0 3\n");
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rig_frees(rig, six, 1);
	assert_int_equal(rig_count(rig, "unknown"), 1);
	tagged.vlan = 7;
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	assert_int_equal(rte_pktmbuf_mtod(rig_sent(rig), uint8_t *)[5], 3);
	offer_malformed(rig);
	assert_true(rig_count(rig, "malformed") > 20);
	rig_check_unknown(rig, "IPv4Fwd");
	rig_check_unknown(rig, "IPv4Fwd");
	offer_hostile(rig, NULL, 0, NULL);
	assert_int_equal(rig->spare ? rte_mempool_in_use_count(rig->spare) : 0, 0);
}

/* Generated routes depend on the seed only. */
FOLDER_TEST(routes_are_generated_from_the_seed)
{
	int hops[2][200];

	for (int round = 0; round < 2; round++) {
		RIG_MAKE(rig, "IPv4Fwd", {"routes", 200000}, {"seed", 3});
		for (uint32_t i = 0; i < 200; i++)
			hops[round][i] = hop_of(rig, RTE_IPV4(20, 0, 0, 1) +
							     i * 0x9e3779b1u % 0x40000000u);
	}
	assert_memory_equal(hops[0], hops[1], sizeof(hops[0]));
}

/* A file with a fault is refused with its line. */
FOLDER_TEST(wrong_files_are_refused)
{
	const struct nf_setting settings[] = {{"file", .text = "file"}, {"hops", 4}};

	write_file("file", "10.0.0.0/8 4\n10.0.0.0/33 1\n");
	assert_string_equal(refusal("IPv4Fwd", settings, RTE_DIM(settings)),
			    "file:1: 4: not a next hop: they are numbered from 0 to 3\n"
			    "file:2: 10.0.0.0/33: a prefix length is from 0 to 32\n"
			    "hint: PREFIX/LENGTH HOP, as `10.0.0.0/8 3`\n");
}
