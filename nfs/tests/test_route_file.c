/* Routes of a router from a file. */
#include "tests/random_routes.h"
#include "tests/refusal.h"

static const struct nf_setting of_file[] = {{"file", .text = "file"}, {"hops", 10}};

/* The next hop of a packet; -1 if it is not forwarded. */
static int hop_to(struct rig *rig, uint32_t destination)
{
	rig_offer(rig,
		  packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							      .destination = destination}),
		  1);
	if (rig_count(rig, "forwarded") == 0)
		return -1;
	rig->nf->counters[0] = 0; /* forwarded */
	return rte_pktmbuf_mtod(rig_sent(rig), uint8_t *)[5];
}

/* Packets take the longest matching prefix of a file, in any order; without one they have none. */
FOLDER_TEST(the_longest_prefix_in_a_file_wins)
{
	write_file("file", "10.1.2.0/24 4 # longest\n"
			   "10.0.0.0/8\t2\r\n"
			   "10.1.2.9 6\n"
			   "10.1.0.0/16 3\n"
			   "10.1.2.128/25 5");
	rig_make(rig, "IPRouter", of_file, 2);
	assert_int_equal(hop_to(rig, RTE_IPV4(10, 200, 0, 1)), 2);
	assert_int_equal(hop_to(rig, RTE_IPV4(10, 1, 200, 1)), 3);
	assert_int_equal(hop_to(rig, RTE_IPV4(10, 1, 2, 1)), 4);
	assert_int_equal(hop_to(rig, RTE_IPV4(10, 1, 2, 129)), 5);
	assert_int_equal(hop_to(rig, RTE_IPV4(10, 1, 2, 9)), 6);
	assert_int_equal(hop_to(rig, RTE_IPV4(11, 0, 0, 1)), -1);
	assert_int_equal(rig_count(rig, "unroutable"), 1);
}

/* The default route is 0.0.0.0/0, or any, wherever it stands. */
FOLDER_TEST(the_default_route_is_one_of_the_file)
{
	static const char *const files[] = {"10.0.0.0/8 2\n0.0.0.0/0 7\n", "any 7\n10.0.0.0/8 2\n"};

	for (int i = 0; i < 2; i++) {
		write_file("file", files[i]);
		rig_make(rig, "IPRouter", of_file, 2);
		assert_int_equal(hop_to(rig, RTE_IPV4(11, 0, 0, 1)), 7);
		assert_int_equal(hop_to(rig, RTE_IPV4(10, 0, 0, 1)), 2);
		assert_int_equal(hop_to(rig, RTE_IPV4(127, 0, 0, 1)), -1);
	}
}

/* In 40 random tables with prefixes of all lengths, both forwarders find the longest one. */
FOLDER_TEST(the_longest_prefix_wins_in_any_table)
{
	static const struct nf_setting settings[] = {{"file", .text = "file"}};
	static const char *const forwarders[] = {"IPRouter", "IPv4Fwd"};
	struct route routes[RANDOM_ROUTES];
	uint64_t random = 3;

	for (int table = 0; table < 40; table++) {
		const uint32_t n = random_routes_write("file", &random, routes);

		rig_make(rig, forwarders[table % 2], settings, 1);
		for (int i = 0; i < 300; i++) {
			const uint32_t to = random_destination(&random, routes, n);

			if (table % 2 == 1 || ipv4_is_routed(rte_cpu_to_be_32(to)))
				assert_int_equal(hop_to(rig, to), hop_by_search(routes, n, to));
		}
	}
}

/* All faults are named with file and line, then how a line is written. */
FOLDER_TEST(every_fault_has_its_line)
{
	write_file("file", "10.0.0.0/8 1\n"
			   "11.0.0.0/8\n"
			   "11.0.0.0/8 1 2\n"
			   "11.0.0.1/8 1\n"
			   "1100::/16 1\n"
			   "11.0.0.0/8 10\n"
			   "11.0.0.0/8 -1\n"
			   "127.0.0.0/9 1\n"
			   "224.0.0.5 1\n"
			   "192.0.2.254/32 1\n"
			   "12.0.0.0/9 2\n"
			   "10.0.0.0/8 3\n"
			   "12.0.0.0/8 2\n"
			   "10.0.0.0/8 1\n");
	assert_string_equal(
		refusal("IPRouter", of_file, 2),
		"file:2: 1 word instead of 2\n"
		"file:3: 3 words instead of 2\n"
		"file:4: 11.0.0.1/8: bits beyond the prefix are set, other than in 11.0.0.0/8\n"
		"file:5: 1100::/16: not an IPv4 address\n"
		"file:6: 10: not a next hop: they are numbered from 0 to 9\n"
		"file:7: -1: not a next hop: they are numbered from 0 to 9\n"
		"file:8: 127.0.0.0/9: routers forward nothing there (RFC 1812, section 5.3.7)\n"
		"file:9: 224.0.0.5: routers forward nothing there (RFC 1812, section 5.3.7)\n"
		"file:10: 192.0.2.254/32: the router's own address\n"
		"file:12: the prefix has a route already\n"
		"file:14: the prefix has a route already\n"
		"hint: PREFIX/LENGTH HOP, as `10.0.0.0/8 3`\n");
}

static void write_routes(const struct route *routes, uint32_t n)
{
	FILE *file = fopen("file", "w");

	assert_non_null(file);
	for (uint32_t i = 0; i < n; i++)
		fprintf(file, "%u.%u.%u.%u/%u %u\n", routes[i].prefix >> 24,
			routes[i].prefix >> 16 & 0xff, routes[i].prefix >> 8 & 0xff,
			routes[i].prefix & 0xff, routes[i].depth, routes[i].hop);
	fclose(file);
}

/* Leave one route of each prefix. */
static uint32_t without_repetition(struct route *routes, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t same = 0;

		while (same < kept && (routes[same].prefix != routes[i].prefix ||
				       routes[same].depth != routes[i].depth))
			same++;
		if (same == kept)
			routes[kept++] = routes[i];
	}
	return kept;
}

/* Generated routes that are written to a file lead packets to the same hops. */
FOLDER_TEST(what_is_written_is_read)
{
	struct route *routes = routes_generate("test", 3000, 5, 10);
	const uint32_t n = without_repetition(routes, 3000);
	uint64_t random = 1;

	write_routes(routes, n);
	rig_make(rig, "IPRouter", of_file, 2);
	for (int i = 0; i < 3000; i++) {
		const struct route *near = &routes[random_below(&random, n)];
		const uint32_t address =
			near->prefix ^
			(uint32_t)(random_next(&random) >> (40 + random_below(&random, 24)));

		if (address != RTE_IPV4(127, 0, 0, 1))
			assert_int_equal(hop_to(rig, address), hop_by_search(routes, n, address));
	}
	free(routes);
}
