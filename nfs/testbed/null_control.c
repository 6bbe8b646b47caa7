#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "testbed/testbed.h"

#define HELD_PCT 1.0 /* largest change of a stable machine */
#define MOST_WINDOWS 200
#define RETRIES 10 /* retry sooner after a null control that was too noisy */

static const struct engines no_engines;

static double clock_s(void)
{
	return 1e-9 * (double)clock_ns();
}

/* Measure null-bench on the first `cores` cores at once. */
static enum outcome measure_null(struct testbed *testbed, unsigned int cores,
				 struct measured *measured)
{
	struct run_limits limits = testbed->limits;
	struct co_location co_location = {.n = cores};

	limits.least_windows = LEAST_ROUNDS;
	limits.most_windows = MOST_WINDOWS;
	limits.standard_error_pct = HELD_PCT / 2;
	limits.best_effort = false;
	for (unsigned int i = 0; i < cores; i++)
		co_location.loads[i].bench = bench_find("null-bench");
	return measure(measured, &co_location, &testbed->workers, &no_engines, &limits,
		       testbed->stop);
}

static double change_pct(double from, double to)
{
	return 100 * (to / from - 1);
}

/* The error of a change, which has that of both throughputs. */
static double change_error_pct(const struct measured *from, const struct measured *to,
			       unsigned int load)
{
	return hypot(from->standard_error_pct[0], to->standard_error_pct[load]);
}

/* Keep the change on the slowest core. */
static void compare_core(struct null_control *control, const struct measured *alone,
			 const struct measured *together, unsigned int core)
{
	const double change = change_pct(alone->per_s[0], together->per_s[core]);

	if (core > 0 && change >= control->beside_pct)
		return;
	control->beside_pct = change;
	control->beside_error_pct = change_error_pct(alone, together, core);
}

/* Measure alone, on all cores at once, and alone again. */
static struct null_control take_null_control(struct testbed *testbed)
{
	const unsigned int cores =
		testbed->workers.n < MOST_LOADS ? testbed->workers.n : MOST_LOADS;
	struct null_control control = {.taken_s = clock_s()};
	struct measured alone, together, again;

	if (measure_null(testbed, 1, &alone) != MEASURED ||
	    measure_null(testbed, cores, &together) != MEASURED ||
	    measure_null(testbed, 1, &again) != MEASURED) {
		control.too_noisy = true;
		return control;
	}
	control.alone_mops = alone.per_s[0] / 1e6;
	control.repeat_pct = change_pct(alone.per_s[0], again.per_s[0]);
	control.repeat_error_pct = change_error_pct(&alone, &again, 0);
	control.standard_error_pct = fmax(alone.standard_error_pct[0], again.standard_error_pct[0]);
	for (unsigned int i = 0; i < cores; i++)
		compare_core(&control, &alone, &together, i);
	return control;
}

/* Whether a change is large, and not within its own error: 1.96 standard errors, 95 %. */
static bool is_change(double change, double error)
{
	return fabs(change) > fmax(HELD_PCT, NORMAL_QUANTILE * error);
}

static void print_null_control(const struct null_control *control)
{
	if (control->too_noisy) {
		fprintf(stderr,
			"testbed: null control: the machine is too busy; a loop in registers "
			"could not be measured\n");
		return;
	}
	fprintf(stderr,
		"testbed: null control: a loop in registers runs at %.1f Mops, %+.2f +- %.2f %% "
		"with all cores busy, %+.2f +- %.2f %% when repeated\n",
		control->alone_mops, control->beside_pct,
		NORMAL_QUANTILE * control->beside_error_pct, control->repeat_pct,
		NORMAL_QUANTILE * control->repeat_error_pct);
	if (control->beside_pct < 0 && is_change(control->beside_pct, control->beside_error_pct))
		fprintf(stderr, "testbed: cores are not independent: they share execution units, "
				"power, or a hypervisor's time\n");
	if (is_change(control->repeat_pct, control->repeat_error_pct))
		fprintf(stderr, "testbed: this machine's speed varies by more than %g %%\n",
			HELD_PCT);
}

static void print_siblings(const struct machine *machine)
{
	for (unsigned int i = 0; i < machine->n_cores; i++)
		for (unsigned int j = i + 1; j < machine->n_cores; j++)
			if (machine_siblings(machine->cores[i], machine->cores[j]))
				fprintf(stderr,
					"testbed: cores %d and %d are hardware threads of one "
					"core\n",
					machine->cores[i], machine->cores[j]);
}

static bool is_due(const struct testbed *testbed)
{
	const struct null_control *last = &testbed->null_control;
	const double interval_s = 60.0 * testbed->options.null_control_minutes;

	return interval_s > 0 &&
	       (last->taken_s == 0 ||
		clock_s() - last->taken_s >= (last->too_noisy ? interval_s / RETRIES : interval_s));
}

void testbed_check_null(struct testbed *testbed)
{
	const struct null_control before = testbed->null_control;
	struct null_control now;

	if (!is_due(testbed))
		return;
	if (before.taken_s == 0)
		print_siblings(&testbed->machine);
	now = take_null_control(testbed);
	if (*testbed->stop)
		return;
	testbed->null_control = now;
	print_null_control(&now);
	if (before.alone_mops > 0 && !now.too_noisy)
		fprintf(stderr, "testbed: it changed by %+.2f %% since the last null control\n",
			change_pct(before.alone_mops, now.alone_mops));
}
