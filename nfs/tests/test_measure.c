#include <math.h>
#include <pthread.h>

#include "core/clock.h"
#include "testbed/measure.h"
#include "tests/support.h"

#define MS 1000000ull /* ns */

static struct workers workers;
static const struct engines no_engines;
static const volatile bool never;

/* A millisecond of work, too short to count as lost time. */
static void fake_work(void)
{
	const uint64_t until = clock_ns() + MS;

	while (clock_ns() < until)
		;
}

static uint64_t fake_work_once(struct bench *bench)
{
	(void)bench;
	fake_work();
	return 1;
}

static struct bench_kind slow = {
	.name = "slow-bench",
	.help = "does 1,000 units per second",
	.unit = "units",
	.step = fake_work_once,
};

BENCH_REGISTER(slow)

static const struct nf_parameter table[] = {{"flows", "capacity of the table", 1, 1e6, 1e6}};

static void fake_work_per_burst(struct nf *nf, struct rte_mbuf **packets, uint16_t n,
				struct nf_out *out)
{
	(void)nf;
	fake_work();
	nf_send_bulk(out, packets, n);
}

static struct nf_kind with_table = {
	.name = "SlowTable",
	.help = "has a table, and 32,000 packets a second",
	.parameters = table,
	.n_parameters = RTE_DIM(table),
	.process = fake_work_per_burst,
};

static struct nf_kind without_table = {
	.name = "SlowPlain",
	.help = "has no table, and 32,000 packets a second",
	.process = fake_work_per_burst,
};

NF_REGISTER(with_table)
NF_REGISTER(without_table)

/* Windows of 20 ms, with the end in `due_ms`. */
static struct run_limits limits_of(unsigned int most_windows, double standard_error_pct,
				   unsigned int due_ms)
{
	return (struct run_limits){.window_ms = 20,
				   .least_windows = LEAST_ROUNDS,
				   .most_windows = most_windows,
				   .standard_error_pct = standard_error_pct,
				   .until_ns = clock_ns() + due_ms * MS};
}

static enum outcome measure_one(const struct load *load, const struct run_limits *limits,
				struct measured *measured)
{
	const struct co_location co_location = {.n = 1, .loads = {*load}};

	return measure(measured, &co_location, &workers, &no_engines, limits, &never);
}

static struct load nf_with_flows(const struct nf_kind *kind, uint32_t flows)
{
	return (struct load){.nf = kind, .traffic = {.flows = flows, .packet_size = 64}};
}

static unsigned int windows_of(const struct measured *measured)
{
	return measured->windows[UNDISTURBED] + measured_rejected(measured);
}

/* Loads without a table are measured at once, however slow and however many flows. */
static void only_tables_need_warm_up(void **state)
{
	const struct load loads[] = {{.bench = &slow}, nf_with_flows(&without_table, 500000)};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(loads); i++) {
		const struct run_limits limits = limits_of(60, 100, 30000);
		struct measured measured;

		measure_one(&loads[i], &limits, &measured);
		assert_true(windows_of(&measured) > 0);
		assert_true(measured.elapsed_s < 10);
	}
}

/* The time to fill tables does not count against the windows. */
static void warm_up_does_not_use_window_time(void **state)
{
	const struct load load = nf_with_flows(&with_table, 16000); /* half a second per round */
	const struct run_limits limits = limits_of(25, 100, 60000);
	struct measured measured;

	(void)state;
	measure_one(&load, &limits, &measured);
	assert_true(measured.rounds > 1 || measured_rejected(&measured) > 0);
}

/* A table that is not filled in time is an error, not a measurement. */
static void cold_tables_are_an_error(void **state)
{
	const struct load load = nf_with_flows(&with_table, 500000);
	const struct run_limits limits = limits_of(100, 100, 500);
	struct measured measured;

	(void)state;
	assert_int_equal(measure_one(&load, &limits, &measured), TOO_SLOW);
	assert_true(measured.elapsed_s < 5);
}

/*
 * A run whose error stays too large ends at the limit of windows, and at its deadline, also within
 * a round.
 */
static void ends_at_its_limits(void **state)
{
	const struct load load = {.bench = bench_find("null-bench")};
	struct run_limits limits = limits_of(100000, 1e-9, 500);
	struct measured measured;

	(void)state;
	limits.least_windows = 100000;
	assert_int_equal(measure_one(&load, &limits, &measured), TOO_NOISY);
	assert_true(measured.elapsed_s < 5);
	limits = limits_of(25, 1e-9, 60000);
	assert_int_equal(measure_one(&load, &limits, &measured), TOO_NOISY);
	assert_true(windows_of(&measured) <= 25);
	assert_true(measured.elapsed_s < 5);
}

struct competitor {
	pthread_t thread;
	int core;
	bool competes, stop;
};

static void *compete(void *argument)
{
	struct competitor *competitor = argument;
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(competitor->core, &core);
	pthread_setaffinity_np(pthread_self(), sizeof(core), &core);
	__atomic_store_n(&competitor->competes, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&competitor->stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Measure null-bench while another thread wants its core all the time. */
static enum outcome measure_disturbed(const struct run_limits *limits, struct measured *measured)
{
	const struct load load = {.bench = bench_find("null-bench")};
	struct competitor competitor = {.core = workers.worker[0].core};
	enum outcome outcome;

	assert_int_equal(pthread_create(&competitor.thread, NULL, compete, &competitor), 0);
	/* on a busy machine the thread may begin when all windows have been taken */
	while (!__atomic_load_n(&competitor.competes, __ATOMIC_RELAXED))
		sched_yield();
	outcome = measure_one(&load, limits, measured);
	__atomic_store_n(&competitor.stop, true, __ATOMIC_RELAXED);
	pthread_join(competitor.thread, NULL);
	return outcome;
}

/*
 * Next to other work, a best effort answers where another run is too noisy: with the rate per time
 * on the core, and an error that includes what disturbance may have changed.
 */
static void a_best_effort_answers_on_a_busy_core(void **state)
{
	struct run_limits limits = limits_of(25, 0.5, 60000);
	struct measured measured;

	(void)state;
	assert_int_equal(measure_disturbed(&limits, &measured), TOO_NOISY);
	limits.best_effort = true;
	limits.until_ns = clock_ns() + 60000 * MS;
	assert_int_equal(measure_disturbed(&limits, &measured), BEST_EFFORT);
	assert_true(measured_disturbed_pct(&measured) > 50);
	assert_true(measured.rounds >= LEAST_ROUNDS);
	assert_true(measured.per_s[0] > 0);
	assert_true(isfinite(measured.standard_error_pct[0]));
	assert_true(measured.standard_error_pct[0] > 0);
	assert_true(measured.elapsed_s < 60);
}

/* With a deadline before the second round, the error is unknown, and there is no best effort. */
static void one_round_is_no_best_effort(void **state)
{
	struct run_limits limits = limits_of(100000, 1e-9, 300);
	struct measured measured;

	(void)state;
	limits.least_windows = 100000;
	limits.best_effort = true;
	assert_int_equal(measure_disturbed(&limits, &measured), TOO_NOISY);
	assert_true(measured.elapsed_s < 5);
}

/* Rounds are numbered across runs: no two have the same seed. */
static void each_round_has_its_own_seed(void **state)
{
	const struct load load = {.bench = bench_find("null-bench")};
	const uint64_t before = workers.rounds;
	struct measured measured;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct run_limits limits = limits_of(25, 100, 60000);

		measure_one(&load, &limits, &measured);
	}
	assert_true(workers.rounds >= before + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_tables_need_warm_up),
		cmocka_unit_test(warm_up_does_not_use_window_time),
		cmocka_unit_test(cold_tables_are_an_error),
		cmocka_unit_test(ends_at_its_limits),
		cmocka_unit_test(a_best_effort_answers_on_a_busy_core),
		cmocka_unit_test(one_round_is_no_best_effort),
		cmocka_unit_test(each_round_has_its_own_seed),
	};
	const struct eal_config eal_config = {.memory_mb = 512};
	struct machine machine;
	int failed;

	if (machine_read(&machine, NULL) < 0 || workers_start(&workers, &machine, &eal_config) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	workers_stop(&workers);
	return failed ? 1 : 0;
}
