#include "tests/gpu_rig.h"
#include "tests/random_routes.h"

#define ROUTES 100000

/* Destinations at and around the routes of a seed, where prefixes of several lengths meet. */
static void near_routes(uint32_t *addresses, unsigned int n, uint64_t seed)
{
	struct routes routes = {.random = seed, .hops = 64};

	for (unsigned int i = 0; i < n; i++) {
		const struct route route = routes_next(&routes);

		addresses[i] = route.prefix + (i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : ~0u);
	}
}

/* Hostile packets to routes of all lengths have the same verdict, gate and bytes everywhere. */
RIG_TEST(equals_the_function_in_c)
{
	const struct nf_setting settings[] = {
		{"routes", ROUTES}, {"ports", 3}, {"default_route", 0}, {"errors_per_s", 0}};
	static uint32_t addresses[ROUTES];
	struct gpu_rig *gpu = gpu_rig_make(rig, "IPRouter", settings, RTE_DIM(settings));

	near_routes(addresses, ROUTES, 1);
	gpu_rig_offer_hostile(gpu, addresses, ROUTES, gpu_rig_count(6000));
	assert_true(rig_count(rig, "forwarded") > 500);
	assert_true(rig_count(rig, "expired") > 100);
	assert_true(rig_count(rig, "unroutable") > 100);
	assert_true(rig_count(rig, "malformed") > 100);
}

/* The first bytes of a frame, as many as headers can have, are enough. */
RIG_TEST(needs_headers_alone)
{
	const struct nf_setting settings[] = {{"routes", 1000}, {"errors_per_s", 0}};
	struct gpu_rig *gpu = gpu_rig_make(rig, "IPRouter", settings, RTE_DIM(settings));

	gpu->most_held = GPU_HEADERS;
	gpu_rig_offer_hostile(gpu, NULL, 0, 2000);
}

/* Checksums at which the sum carries, to both zeros, are updated as in C. */
RIG_TEST(checksums_carry_as_in_c)
{
	struct gpu_rig *gpu = gpu_rig_make(rig, "IPRouter", SETTINGS({"routes", 0}));

	for (uint32_t id = 0; id <= UINT16_MAX; id++) {
		struct rte_mbuf *packet = packet_from_spec(
			rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
						      .destination = RTE_IPV4(20, 0, 0, 1),
						      .id = (uint16_t)id});
		const uint16_t sum = ipv4_of(packet)->hdr_checksum;

		if (sum >= 0xfff0 || sum < 0x10)
			gpu_rig_add(gpu, packet);
		else
			rte_pktmbuf_free(packet);
	}
	gpu_rig_run(gpu);
	assert_true(rig_count(rig, "forwarded") >= 0x1f);
}

static struct {
	struct route routes[RANDOM_ROUTES];
	uint32_t n;
} table;

/* The gate of the longest prefix that a search finds. */
static void check_hop(struct gpu_rig *gpu, struct rte_mbuf *packet, const struct gpu_slot *head)
{
	const uint32_t to = rte_be_to_cpu_32(ipv4_of(packet)->dst_addr);
	const int hop = hop_by_search(table.routes, table.n, to);

	(void)gpu;
	if (hop < 0)
		assert_string_equal(gpu_verdict_name(GPU_IP_ROUTER, head->verdict), "unroutable");
	else
		assert_int_equal(head->detail, NF_BRANCH + hop);
}

/* In random tables with prefixes of all lengths, every engine and C find the longest one. */
FOLDER_TEST(the_longest_prefix_wins_in_any_table)
{
	uint64_t random = 4;

	for (int i = 0; i < 10; i++) {
		struct gpu_rig *gpu;

		table.n = random_routes_write("file", &random, table.routes);
		gpu = gpu_rig_make(rig, "IPRouter",
				   SETTINGS({"file", .text = "file"}, {"ports", RANDOM_HOPS},
					    {"errors_per_s", 0}));
		gpu->check = check_hop;
		for (int k = 0; k < 600; k++) {
			const uint32_t to =
				random_destination(&random, table.routes, table.n);

			if (ipv4_is_routed(rte_cpu_to_be_32(to)) && to != RTE_IPV4(192u, 0, 2, 254))
				gpu_rig_add(gpu,
					    packet_from_spec(
						    rig, &(struct packet_spec){
								 .source = RTE_IPV4(10, 0, 0, 1),
								 .destination = to}));
		}
		gpu_rig_run(gpu);
	}
}
