#include <math.h>
#include <unistd.h>

#include "testbed/statistics.h"
#include "testbed/window.h"
#include "tests/support.h"

#define MS 1000000ull /* ns */

/* A window of 100 ms on cores 0 and 1, the load on core 0; core 2 shares no cache with them. */
struct span {
	struct co_location co_location;
	struct workers workers;
	struct co_run co_run;
	struct snapshot from, to;
};

static void make_quiet(struct span *span)
{
	memset(span, 0, sizeof(*span));
	span->co_location.n = 1;
	span->workers.n = 2;
	span->workers.worker[1].core = 1;
	span->co_run.co_location = &span->co_location;
	span->co_run.workers = &span->workers;
	span->co_run.n_workers = 1;
	span->to.ns = 100 * MS;
	span->to.done[0] = 1000;
	span->to.workers[0].at = span->to.workers[1].at = 100 * MS;
	span->to.workers[0].on_core = 100 * MS;
	span->to.cores[0].busy = 10;
	CPU_SET(0, &span->workers.worker[0].cache_neighbours);
	CPU_SET(1, &span->workers.worker[0].cache_neighbours);
}

static enum disturbance disturbance_of(const struct span *span)
{
	return window_disturbed(&span->from, &span->to, &span->co_run);
}

/* If the worker had its core and all others were idle, the window counts and has a rate. */
TEST(undisturbed_windows_count)
{
	struct span span;

	make_quiet(&span);
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	assert_float_equal(window_rate(&span.from, &span.to, 0), 10000, 1e-6);
}

/* Up to 0.5 % of a window may be lost: 0.5 ms of 100 ms. */
TEST(lost_time_disturbs)
{
	struct span span;

	make_quiet(&span);
	span.to.workers[0].run_delay = MS / 2 - 1000;
	span.to.workers[0].on_core = 100 * MS - MS / 2 + 1000;
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	span.to.workers[0].run_delay = MS / 2 + 1000;
	assert_int_equal(disturbance_of(&span), RUN_DELAY);
	span.to.workers[0].run_delay = 0;
	span.to.workers[0].on_core = 100 * MS - MS / 2 - 1000;
	assert_int_equal(disturbance_of(&span), OFF_CORE);
}

/* Time taken by the hypervisor is reported as steal. */
TEST(stolen_time_disturbs)
{
	struct span span;

	make_quiet(&span);
	span.to.cores[0].stolen = 1;
	span.to.workers[0].on_core = 90 * MS;
	assert_int_equal(disturbance_of(&span), STEAL);
}

/* Work on a core that shares the cache disturbs, unless it is the run's own; other cores do not. */
TEST(neighbours_disturb)
{
	struct span span;

	make_quiet(&span);
	span.to.cores[2].busy = 10;
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	span.to.cores[1].busy = 1;
	assert_int_equal(disturbance_of(&span), NEIGHBOUR);
	span.co_run.n_workers = 2;
	span.to.workers[1].on_core = 100 * MS;
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
}

/* A slow reading disturbs; a worker's lost time is measured by the time of its own reading. */
TEST(slow_readings_disturb)
{
	struct span span;

	make_quiet(&span);
	span.from.reading_ns = span.to.reading_ns = 19000;
	span.to.workers[0].at = 103 * MS;
	span.to.workers[0].on_core = 103 * MS;
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	span.to.workers[0].on_core = 102 * MS;
	assert_int_equal(disturbance_of(&span), OFF_CORE);
	span.to.workers[0].on_core = 103 * MS;
	span.to.reading_ns = 21000;
	assert_int_equal(disturbance_of(&span), CONTROL);
	span.to.reading_ns = 0;
	span.from.reading_ns = 21000;
	assert_int_equal(disturbance_of(&span), CONTROL);
}

/* Disturbance is the time that others took: of the run's core, and of idle ones, in cores. */
TEST(disturbance_adds_up_over_cores)
{
	const double tick_ms = 1e3 / (double)sysconf(_SC_CLK_TCK);
	struct span span;

	make_quiet(&span);
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 0, 1e-9);
	span.to.workers[0].on_core = 75 * MS;
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 0.25, 1e-9);
	span.to.cores[1].busy = (uint64_t)(50 / tick_ms);
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 0.75, 1e-9);
	span.to.cores[1].busy = 1000;
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 1.25, 1e-9);
	span.to.workers[0].at = 101 * MS;
	span.to.workers[0].on_core = 101 * MS;
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 1.01, 1e-9);
	span.to.workers[0].on_core = MS / 2;
	assert_true(isinf(window_disturbance(&span.from, &span.to, &span.co_run)));
}

/* A workload that had a quarter of its core does four times as much per time on it. */
TEST(rates_per_time_on_the_core)
{
	struct span span;

	make_quiet(&span);
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 10000, 1e-6);
	span.to.workers[0].on_core = 25 * MS;
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 40000, 1e-6);
	span.co_location.n = 2;
	span.to.done[1] = 3000;
	span.co_run.clients_share_a_core = true;
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 1), 120000, 1e-6);
}

/* Copies differ by nothing but their cores: the mean share of these counts. */
TEST(copies_share_what_they_lost)
{
	struct span span;

	make_quiet(&span);
	span.co_location.loads[0].cores = 2;
	span.co_run.n_workers = 2;
	span.to.workers[0].on_core = 60 * MS;
	span.to.workers[1].on_core = 100 * MS;
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 12500, 1e-6);
}

/* A bench catches up after it waited for its core, but does no more than its rate. */
TEST(rates_have_their_limit)
{
	static const struct bench_kind bench;
	struct span span;
	struct load *load = &span.co_location.loads[0];

	make_quiet(&span);
	span.to.workers[0].on_core = 25 * MS;
	load->bench = &bench;
	load->n_settings = 2;
	load->settings[0] = (struct nf_setting){"wss_mb", 1};
	load->settings[1] = (struct nf_setting){"rate_kpps", 39};
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 39000, 1e-6);
	load->settings[1] = (struct nf_setting){"access_mops", 0.039};
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 39000, 1e-6);
	load->settings[1] = (struct nf_setting){"rate_kpps", 0}; /* as fast as it goes */
	assert_float_equal(window_core_rate(&span.from, &span.to, &span.co_run, 0), 40000, 1e-6);
}

/* The mean of 1, 2, 3, 4 is 2.5 with standard error sqrt(5/3/4); one reading has none. */
TEST(standard_error_of_four_readings)
{
	struct readings readings = {0};

	readings_add(&readings, 1);
	assert_true(isinf(readings_standard_error(&readings)));
	for (int reading = 2; reading <= 4; reading++)
		readings_add(&readings, reading);
	assert_float_equal(readings.mean, 2.5, 1e-12);
	assert_float_equal(readings_standard_error(&readings), sqrt(5.0 / 3 / 4), 1e-12);
}

/* A window in which the core's probes took 5 % longer than in the fastest one does not count. */
TEST(slow_cores_disturb)
{
	struct span span;

	make_quiet(&span);
	windows_begin(false);
	span.to.probes[0].n = 10;
	span.to.probes[0].cycles = 10000;
	window_learn(&span.from, &span.to, &span.co_run);
	span.to.probes[0].cycles = 10490;
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	span.to.probes[0].cycles = 12500;
	assert_int_equal(disturbance_of(&span), SLOWED);
	assert_float_equal(window_disturbance(&span.from, &span.to, &span.co_run), 0.2, 1e-9);
	windows_begin(false);
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
}

/* On a shared machine rates are as at the fastest clock; a busy hyperthread disturbs. */
TEST(shared_cores_are_corrected_for_their_clock)
{
	struct span span;

	make_quiet(&span);
	windows_begin(false);
	windows_begin(true);
	span.to.probes[0].n = 10;
	span.to.probes[0].cycles = 10000;
	window_learn(&span.from, &span.to, &span.co_run);
	windows_begin(true); /* the next run sees a lower clock only */
	span.to.probes[0].cycles = 12000;
	window_learn(&span.from, &span.to, &span.co_run);
	assert_int_equal(disturbance_of(&span), UNDISTURBED);
	assert_float_equal(window_slowness(&span.from, &span.to, &span.co_run, 0), 1.2, 1e-9);
	span.to.probes[0].cycles = 20000;
	assert_int_equal(disturbance_of(&span), SLOWED);
	assert_float_equal(window_slowness(&span.from, &span.to, &span.co_run, 0), 1.3, 1e-9);
	windows_begin(false);
	assert_float_equal(window_slowness(&span.from, &span.to, &span.co_run, 0), 1, 1e-9);
}
