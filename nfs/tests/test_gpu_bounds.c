#include <stdlib.h>

#include "core/random.h"
#include "gpu/kernels/process.h"
#include "gpu/state/state.h"
#include "tests/hostile.h"
#include "tests/offloading.h"

#define PACKETS 4000

/*
 * A packet in memory that ends where the slot ends, and a result with little room, so that a
 * sanitizer reports every access beyond them.
 */
static void process_one(enum gpu_nf nf, const struct gpu_state *state, struct rte_mbuf *packet,
			uint64_t *random)
{
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const uint32_t held = random_below(random, 4) ? length : random_below(random, length + 1);
	const uint32_t room = random_below(random, 2) ? 2048 : random_below(random, 200);
	u8 *in = malloc(GPU_FRAME_AT + held), *out = malloc(GPU_FRAME_AT + room);
	struct gpu_slot head = {.length = length, .held = held, .detail = packet_from(packet)};
	const struct gpu_task task = {
		.nf = nf,
		.n = 1,
		.out_stride = GPU_FRAME_AT + room,
		.first_low = 0xfffffff0,
	};

	assert_true(in && out);
	memcpy(in, &head, sizeof(head));
	packet_bytes(packet, in + GPU_FRAME_AT, (uint16_t)held);
	gpu_process(in, out, state->bytes, &task, 0, 1);
	memcpy(&head, out, sizeof(head));
	assert_true(head.held <= head.length && head.held <= room);
	free(in);
	free(out);
}

static void check(struct rig *rig, const char *name, const struct nf_setting *settings,
		  unsigned int n_settings)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1), RTE_IPV4(198, 51, 100, 1)};
	struct gpu_state state;
	uint64_t random = 9;

	rig_make(rig, name, settings, n_settings);
	assert_true(gpu_state_build(rig->nf, &state));
	for (int i = 0; i < PACKETS; i++) {
		struct rte_mbuf *packet = hostile_packet(rig, addresses, 2, &random);

		process_one(gpu_nf_of(name), &state, packet, &random);
		rte_pktmbuf_free(packet);
	}
	gpu_state_free(&state);
}

/* No kernel reads beyond what a slot holds, nor writes beyond its result's room. */
TEST_WITH(kernels_stay_in_their_slots, struct rig *rig, setup_to_completion, teardown)
{
	const struct nf_setting few[] = {{"routes", 1000}}, tunnel[] = {{"tunnel", 1}},
				transport[] = {{"tunnel", 0}};

	check(rig, "IPRouter", few, 1);
	check(rig, "ACL", NULL, 0);
	if (nf_find("IPSec")) {
		check(rig, "IPSec", tunnel, 1);
		check(rig, "IPSec", transport, 1);
	}
	if (rig->accelerators[ACCELERATOR_REGEX])
		check(rig, "NIDS", NULL, 0);
}

/* Only functions with a kernel have tables. */
RIG_TEST(other_functions_have_no_kernel)
{
	struct gpu_state tables;

	rig_make(rig, "Null", NULL, 0);
	assert_int_equal(gpu_nf_of("Null"), GPU_NFS);
	assert_false(gpu_state_build(rig->nf, &tables));
	assert_string_equal(gpu_nf_name(gpu_nf_of("NIDS")), "NIDS");
	assert_null(gpu_verdict_name(GPU_NFS, 0));
}
