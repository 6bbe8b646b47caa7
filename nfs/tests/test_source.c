#include "testbed/source.h"
#include "tests/support.h"

static const struct traffic_profile small_packets = {.flows = 100, .packet_size = 64};

#define MOST_WAITING 128

#define LONG_STEP_S 10e-6 /* in less, no more than a burst becomes due at the rates of a test */

/* Packets that a source gave, and the time in which the test was too slow to take them. */
struct given {
	double packets, paused_s, seconds;
	unsigned int bursts, timed, late;
};

/* Receive for some time, in which other processes may take the core at any time. */
static struct given receive_for(struct source *source, double seconds)
{
	const double hz = clock_tsc_hz(), begin = (double)rte_rdtsc();
	struct rte_mbuf *packets[NF_BURST];
	struct given given = {0};
	double before = begin, now = begin;

	while (now < begin + seconds * hz) {
		const uint16_t n = source_receive(source, packets);

		for (uint16_t i = 0; i < n; i++) {
			given.timed += source_times(source, packets[i]);
			given.late += source_times(source, packets[i]) &&
				      metadata_of(packets[i])->begun >
					      (uint32_t)(rte_rdtsc() >> LATENCY_SHIFT);
		}
		rte_pktmbuf_free_bulk(packets, n);
		given.packets += n;
		given.bursts += n > 0;
		now = (double)rte_rdtsc();
		if (now - before > LONG_STEP_S * hz)
			given.paused_s += (now - before) / hz;
		before = now;
	}
	given.seconds = (now - begin) / hz;
	return given;
}

/* All that is due is given, but for what is lost while the test is too slow; each is timed. */
TEST(rates_are_kept)
{
	static const double rates_kpps[] = {1, 30, 700, 3000};

	for (size_t i = 0; i < RTE_DIM(rates_kpps); i++) {
		struct traffic *traffic = traffic_create(&small_packets, 1);
		struct source source = source_at(traffic, rates_kpps[i], MOST_WAITING, 250e-6);
		struct given given = receive_for(&source, 0.1);
		const double due = 1e3 * rates_kpps[i] * given.seconds;

		assert_true(given.packets <= due + 1);
		assert_true(given.packets >=
			    due - 1e3 * rates_kpps[i] * given.paused_s - NF_BURST - 1);
		assert_int_equal(given.timed, given.packets);
		assert_int_equal(given.late, 0);
		traffic_destroy(traffic);
	}
}

/* Above what is received, bursts are full, as without a rate; most packets are not timed. */
TEST(overload_is_as_fast_as_it_goes)
{
	struct traffic *traffic = traffic_create(&small_packets, 1);
	struct source source = source_at(traffic, 1e6, MOST_WAITING, 250e-6);
	struct given given;

	source.mask = 4095;
	given = receive_for(&source, 0.05);
	assert_true(given.packets >= NF_BURST * (given.bursts - 1.0));
	assert_true(given.timed <= NF_BURST * (given.packets / 4096 + 1));
	assert_true(given.timed > 0);
	traffic_destroy(traffic);
}

/* Packets that fill tables enter at once, at the lowest rate, too. */
TEST(tables_are_filled_at_once)
{
	struct traffic *traffic = traffic_create(&small_packets, 1);
	struct source source = source_at(traffic, 1e-3, MOST_WAITING, 250e-6);
	struct rte_mbuf *packets[NF_BURST];

	source.fill = 100;
	for (int burst = 0; burst < 4; burst++) {
		assert_int_equal(source_receive(&source, packets), NF_BURST);
		rte_pktmbuf_free_bulk(packets, NF_BURST);
	}
	assert_int_equal(source_receive(&source, packets), 1);
	assert_int_equal(source_receive(&source, packets), 0);
	rte_pktmbuf_free(packets[0]);
	traffic_destroy(traffic);
}
