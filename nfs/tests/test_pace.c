#include <rte_cycles.h>

#include "core/pace.h"
#include "tests/support.h"

#define HZ 2.5e9
#define MS (HZ / 1000)

/* A pace with a clock of HZ, due at 0. */
static struct pace packet_spec(double units_per_s)
{
	return (struct pace){.cycles_per_unit = HZ / units_per_s,
			     .most_late = HZ * PACE_MOST_LATE_S};
}

/* Units allowed between two times when polled every microsecond. */
static uint64_t allowed(struct pace *pace, uint32_t quantum, double from, double to)
{
	uint64_t units = 0;

	for (double now = from; now < to; now += HZ / 1e6)
		while (pace_may_at(pace, quantum, now))
			units += quantum;
	return units;
}

/* Rates from a few thousand to some hundred million per second are kept exactly. */
TEST(keeps_slow_and_fast_rates)
{
	static const double rates[] = {2e3, 20e3, 228e3, 4e6, 500e6};

	for (size_t i = 0; i < RTE_DIM(rates); i++) {
		const uint32_t quantum = rates[i] > 1e6 ? 256 : 1;
		struct pace pace = packet_spec(rates[i]);
		const uint64_t units = allowed(&pace, quantum, 0, 1000 * MS);

		assert_true(units >= 0.998 * rates[i] && units <= 1.002 * rates[i] + quantum);
	}
}

/* After 20 ms without a core, a window of 50 ms has at most 0.1 ms of extra work, at any rate. */
TEST(long_pauses_are_not_caught_up)
{
	static const double rates[] = {20e3, 228e3, 4e6};

	for (size_t i = 0; i < RTE_DIM(rates); i++) {
		struct pace pace = packet_spec(rates[i]);
		uint64_t units;

		allowed(&pace, 1, 0, 10 * MS);
		units = allowed(&pace, 1, 30 * MS, 80 * MS);
		assert_true(units <= rates[i] * (50e-3 + PACE_MOST_LATE_S) + 1);
		assert_true(units >= rates[i] * 50e-3 - 1);
	}
}

/* Shorter pauses are caught up. */
TEST(short_pauses_are_caught_up)
{
	struct pace pace = packet_spec(1e6);
	uint64_t units;

	units = allowed(&pace, 1, 0, 10 * MS);
	units += allowed(&pace, 1, 10 * MS + 0.09 * MS, 20 * MS);
	assert_in_range(units, 19999, 20001);
}

/* The counter's frequency agrees with the kernel's clock to one in ten thousand. */
TEST(frequency_agrees_with_the_kernel_clock)
{
	const uint64_t tsc = rte_rdtsc(), ns = clock_ns();
	double hz;

	while (clock_ns() - ns < 100000000)
		;
	hz = 1e9 * (double)(rte_rdtsc() - tsc) / (double)(clock_ns() - ns);
	assert_float_equal(clock_tsc_hz() / hz, 1, 1e-4);
	assert_float_equal(pace_at(1000).cycles_per_unit * 1000 / hz, 1, 1e-4);
}

/* Without a rate everything is allowed at once. */
TEST(unlimited_rate_never_waits)
{
	struct pace pace = pace_at(0);

	for (int i = 0; i < 1000; i++)
		assert_true(pace_may(&pace, 1000000));
}
