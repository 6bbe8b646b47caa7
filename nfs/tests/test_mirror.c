#include "tests/offloading.h"

#include <errno.h>

#include "tests/hostile.h"

static void assert_same_bytes(struct rte_mbuf *one, struct rte_mbuf *other)
{
	uint8_t bytes[2048], copied[2048];
	const uint16_t length = packet_bytes(one, bytes, sizeof(bytes));

	assert_int_equal(packet_bytes(other, copied, sizeof(copied)), length);
	assert_memory_equal(bytes, copied, length);
}

/* Packets pass unchanged and in order, each before a copy that goes back to where it came from. */
BOTH_TEST(packets_pass_before_their_copies)
{
	static const uint8_t cut_off[3] = {1, 2, 3};
	struct rte_mbuf *burst[] = {packet_with(rig, 1, "one"), packet_of(rig, cut_off, 3),
				    in_two(rig, packet_with(rig, 2, "in two"), 40)};

	rig_make(rig, "Mirror", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_int_equal(rig->out.n, 5);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(rig->out.packets[2 * i], burst[i]);
		assert_int_equal(side_of(burst[i]), NF_OUTSIDE);
		assert_int_equal(side_of(rig->out.packets[2 * i + 1]), NF_INSIDE);
		assert_same_bytes(burst[i], rig->out.packets[2 * i + 1]);
	}
	assert_ptr_equal(rig->out.packets[4], burst[2]); /* the first segment has no room */
	assert_counts(rig, {"mirrored", 2}, {"bytes", 14 + 20 + 8 + 3 + 3}, {"unbuffered", 1});
}

/* However many packets are under way, none is lost or sent too early. */
BOTH_TEST(bursts_keep_their_order)
{
	struct rte_mbuf *burst[NF_BURST];

	RIG_MAKE(rig, "Mirror", {"queues", 8}, {"window", 2});
	for (unsigned int round = 0; round < 20; round++) {
		for (int i = 0; i < NF_BURST; i++)
			burst[i] = packet_with(rig, (uint16_t)i, "a packet");
		rig_offer_burst(rig, burst, NF_BURST, round + 1);
		assert_int_equal(rig->out.n, 2 * NF_BURST);
		for (int i = 0; i < NF_BURST; i++)
			assert_ptr_equal(rig->out.packets[2 * i], burst[i]);
	}
	assert_int_equal(rig_count(rig, "mirrored"), 20 * NF_BURST);
}

/* The engine writes what fits the output, and nothing else. */
TEST(the_engine_copies_what_fits)
{
	struct accelerator *accelerator = accelerator_create(ACCELERATOR_DMA);
	struct accelerator_queue *queue = accelerator_attach(accelerator, 8);
	uint8_t output[9] = "........";
	struct accelerator_job job = {
		.input = (const uint8_t *)"abcdef", .length = 6, .output = output, .room = 5};

	queue_run(queue, &job);
	assert_int_equal(job.status, -ENOSPC);
	assert_string_equal(output, "........");
	job.room = 6;
	queue_run(queue, &job);
	assert_int_equal(job.status, 0);
	assert_string_equal(output, "abcdef..");
	accelerator_detach(queue);
	accelerator_destroy(accelerator);
}
