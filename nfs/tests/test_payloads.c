#include "accelerators/accelerator.h"
#include "core/traffic.h"
#include "tests/support.h"

/* Matches that Hyperscan finds per 10^6 bytes in the payloads of all packets. */
static double found_mtbr(const struct traffic_profile *profile, double *configured)
{
	struct accelerator *accelerator = accelerator_create_by("hyperscan");
	struct accelerator_queue *queue = accelerator_attach(accelerator, 1);
	struct traffic *traffic = traffic_create(profile, 1);
	uint64_t matches = 0, bytes = 0;

	assert_non_null(queue);
	assert_non_null(traffic);
	*configured = traffic_mtbr(traffic);
	for (int i = 0; i < TRAFFIC_PACKETS; i++) {
		struct accelerator_job job = {0}, *jobs[] = {&job};
		struct rte_mbuf *packet;
		struct packet headers;

		assert_int_equal(traffic_receive(traffic, &packet, 1), 1);
		headers = packet_parse(packet);
		job.input = rte_pktmbuf_mtod_offset(packet, const uint8_t *, headers.payload);
		job.length = headers.payload_length;
		assert_int_equal(accelerator_submit(queue, jobs, 1), 1);
		while (accelerator_collect(queue, jobs, 1) == 0)
			;
		assert_int_equal(job.status, 0);
		matches += job.produced;
		bytes += job.length;
		rte_pktmbuf_free(packet);
	}
	traffic_destroy(traffic);
	accelerator_detach(queue);
	accelerator_destroy(accelerator);
	return 1e6 * (double)matches / (double)bytes;
}

/* Payloads have exactly the matches written into them: Hyperscan finds the reported rate. */
TEST(hyperscan_finds_the_reported_rate)
{
	static const double rates[] = {0, 100, 600, 1100};
	static const uint16_t sizes[] = {64, 256, 1500};

	for (size_t i = 0; i < RTE_DIM(rates); i++)
		for (size_t j = 0; j < RTE_DIM(sizes); j++) {
			const struct traffic_profile profile = {
				.flows = 1, .packet_size = sizes[j], .mtbr = rates[i]};
			double configured;
			double found = found_mtbr(&profile, &configured);

			assert_float_equal(found, configured, 1e-6);
		}
}

/* Large packets have the requested rate, within one match over all packets. */
TEST(large_packets_have_the_requested_rate)
{
	const struct traffic_profile profile = {.flows = 1, .packet_size = 1500, .mtbr = 600};
	const double one_match = 1e6 / (TRAFFIC_PACKETS * (1500.0 - 4 - 42));
	double configured;

	found_mtbr(&profile, &configured);
	assert_float_equal(configured, 600, one_match);
}
