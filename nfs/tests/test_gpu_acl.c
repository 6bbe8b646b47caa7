#include "core/random.h"
#include "gpu/kernels/acl.h"
#include "tables/filters.h"
#include "tests/files.h"
#include "tests/gpu_rig.h"

#define FILTERS 1000

/* Valid packets that match the filters of a seed, or nearly do. */
static void offer_near_filters(struct gpu_rig *gpu, uint64_t seed, unsigned int n)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, 47};
	uint64_t random = 7;

	for (unsigned int i = 0; i < n; i++) {
		const struct filter filter = filters_next(&seed);
		const bool kept = random_below(&random, 4) > 0;
		struct packet_spec packet_spec = {
			.source = filter.source.address,
			.destination = filter.destination.address ^ random_below(&random, 2),
			.source_port = filter.source_ports.low + random_below(&random, 2),
			.destination_port =
				filter.destination_ports.high + random_below(&random, 2),
			.protocol = kept ? filter.protocol : protocols[random_below(&random, 4)],
			.fragment = random_below(&random, 8) == 0 ? 3 : 0,
			.vlan = random_below(&random, 8) == 0 ? 9 : 0,
			.payload_length = 8,
		};

		gpu_rig_add(gpu, packet_from_spec(gpu->rig, &packet_spec));
	}
	gpu_rig_run(gpu);
}

/* Unmatched packets have no filter's number. */
static uint64_t unmatched;

static void note_unmatched(struct gpu_rig *gpu, struct rte_mbuf *packet,
			   const struct gpu_slot *head)
{
	(void)packet, (void)gpu;
	unmatched += (head->verdict & ~GPU_FREED) <= ACL_DENIED && head->detail == 0;
}

/* Filters near whose edges packets lie decide as those in C, with either default. */
RIG_TEST(equals_the_function_in_c)
{
	for (int permit = 0; permit <= 1; permit++) {
		const struct nf_setting settings[] = {
			{"filters", FILTERS}, {"default_permit", permit}, {"seed", 3}};
		struct gpu_rig *gpu = gpu_rig_make(rig, "ACL", settings, RTE_DIM(settings));

		gpu->check = note_unmatched;
		unmatched = 0;
		offer_near_filters(gpu, 3, gpu_rig_count(4000) / 2);
		assert_true(rig_count(rig, "permitted") > 200);
		assert_true(rig_count(rig, "denied") > 100);
		assert_true(unmatched > 100);
		assert_int_equal(rig_count(rig, "unmatched"), unmatched);
	}
}

static unsigned int left_to_host;

/* IPv6, and what is not understood, is the host's. */
static void count_left(struct gpu_rig *gpu, struct rte_mbuf *packet, const struct gpu_slot *head)
{
	(void)gpu;
	left_to_host += head->verdict == ACL_OTHER;
	assert_true(head->verdict != ACL_OTHER || packet_parse(packet).type != PACKET_IPV4);
}

/* Hostile packets have the same verdicts everywhere, by their headers alone, too. */
RIG_TEST(hostile_packets_have_the_same_verdicts)
{
	static uint32_t addresses[FILTERS];
	struct gpu_rig *gpu = gpu_rig_make(rig, "ACL", SETTINGS({"filters", FILTERS}, {"seed", 2}));
	uint64_t seed = 2;

	for (unsigned int i = 0; i < FILTERS; i++) {
		const struct filter filter = filters_next(&seed);

		addresses[i] = i % 2 ? filter.source.address : filter.destination.address;
	}
	gpu_rig_offer_hostile(gpu, addresses, FILTERS, gpu_rig_count(3000));
	gpu->most_held = GPU_HEADERS;
	gpu->check = count_left;
	gpu_rig_offer_hostile(gpu, addresses, FILTERS, 3000);
	assert_true(rig_count(rig, "malformed") > 100);
	assert_true(left_to_host > 50);
}

/* No filter at all, and a file whose first match hides later ones. */
FOLDER_TEST(filters_of_a_file_are_searched_in_order)
{
	struct gpu_rig *gpu = gpu_rig_make(rig, "ACL", SETTINGS({"filters", 0}));

	gpu_rig_offer_hostile(gpu, NULL, 0, 300);
	write_file("file", "deny udp 10.0.0.0/8 any 50-60\npermit ip any any\ndeny ip any any\n");
	gpu = gpu_rig_make(rig, "ACL", SETTINGS({"file", .text = "file"}));
	offer_near_filters(gpu, 3, 500);
	gpu_rig_offer_hostile(gpu, NULL, 0, 500);
	assert_int_equal(rig_count(rig, "unmatched"), 0);
}
