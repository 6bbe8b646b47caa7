#include "testbed/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "testbed/statistics.h"

#define WARM_MS 50
#define POLL_MS 5
#define ACCURATE_ROUNDS 2

struct run {
	struct measured *measured;
	struct co_run co_run;
	const struct run_limits *limits;
	const volatile bool *stop;
	struct readings rounds[MOST_LOADS], windows[MOST_LOADS];
	unsigned int
		accurate_rounds; /* consecutive rounds after which all errors were small enough */
	struct snapshot snapshots[2];
	uint64_t windows_until_ns; /* when the time for windows ends */
};

static void sleep_ms(unsigned int ms)
{
	const struct timespec span = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&span, NULL);
}

/* The first load whose table is not filled yet, or NULL. */
static const struct load *unfilled(const struct co_run *co_run)
{
	for (unsigned int i = 0; i < co_run->co_location->n; i++)
		if (workload_done(co_run->workloads[i]) < load_fill(&co_run->co_location->loads[i]))
			return &co_run->co_location->loads[i];
	return NULL;
}

/*
 * Wait until all tables are filled and caches are warm; false if a table is not. The time depends
 * on table sizes and does not count against the windows.
 */
static bool warm_up(struct run *run)
{
	const uint64_t begin = clock_ns();
	const struct load *load;

	while ((load = unfilled(&run->co_run)) && !*run->stop && clock_ns() < run->limits->until_ns)
		sleep_ms(POLL_MS);
	sleep_ms(WARM_MS);
	run->windows_until_ns += clock_ns() - begin;
	if (load && !*run->stop)
		fprintf(stderr, "testbed: %s has not seen its %u flows yet\n", load_name(load),
			load->traffic.flows);
	return !load;
}

static unsigned int windows_taken(const struct measured *measured)
{
	return measured->windows[UNDISTURBED] + measured_rejected(measured);
}

/* Whether the limit of windows or of time is reached. */
static bool out_of_time(const struct run *run)
{
	return windows_taken(run->measured) >= run->limits->most_windows ||
	       clock_ns() >= RTE_MIN(run->windows_until_ns, run->limits->until_ns);
}

/* Take windows until `wanted` of them are undisturbed; false if the run ended before. */
static bool take_windows(struct run *run, unsigned int required, struct readings *of_round)
{
	struct snapshot *from = &run->snapshots[0], *to = &run->snapshots[1];

	snapshot_take(from, &run->co_run);
	do {
		enum disturbance disturbance;
		struct snapshot *swap = from;

		sleep_ms(run->limits->window_ms);
		snapshot_take(to, &run->co_run);
		disturbance = window_disturbed(from, to, &run->co_run);
		run->measured->windows[disturbance]++;
		for (unsigned int i = 0;
		     disturbance == UNDISTURBED && i < run->co_run.co_location->n; i++) {
			const double rate = window_rate(from, to, i);

			readings_add(&of_round[i], rate);
			readings_add(&run->windows[i], rate);
		}
		from = to;
		to = swap;
	} while (of_round[0].n < required && !out_of_time(run) && !*run->stop);
	return of_round[0].n >= required;
}

static void update_estimates(struct run *run)
{
	for (unsigned int i = 0; i < run->co_run.co_location->n; i++) {
		const double error = fmax(readings_standard_error(&run->rounds[i]),
					  readings_standard_error(&run->windows[i]));

		run->measured->per_s[i] = run->rounds[i].mean;
		run->measured->standard_error_pct[i] = 100 * error / run->rounds[i].mean;
	}
}

static bool errors_small_enough(const struct run *run)
{
	for (unsigned int i = 0; i < run->co_run.co_location->n; i++)
		if (!(run->measured->standard_error_pct[i] <= run->limits->standard_error_pct))
			return false;
	return true;
}

/*
 * Two rounds in a row must be accurate: rounds that agree by chance would end a run too early and
 * report too small an error.
 */
static bool settled(struct run *run)
{
	run->accurate_rounds = errors_small_enough(run) ? run->accurate_rounds + 1 : 0;
	return run->measured->rounds >= LEAST_ROUNDS && run->accurate_rounds >= ACCURATE_ROUNDS;
}

/* Run one round with new instances; its result counts only if it is complete. */
static enum outcome run_round(struct run *run, const struct co_location *co_location,
			      struct workers *workers, const struct engines *engines)
{
	const unsigned int required =
		(run->limits->least_windows + LEAST_ROUNDS - 1) / LEAST_ROUNDS;
	struct readings of_round[MOST_LOADS] = {0};
	bool warm, complete;

	if (co_run_start(&run->co_run, co_location, workers, engines) < 0)
		return FAILED;
	warm = warm_up(run);
	complete = warm && take_windows(run, required, of_round);
	co_run_stop(&run->co_run);
	if (!complete)
		return *run->stop ? INTERRUPTED : warm ? TOO_NOISY : TOO_SLOW;
	run->measured->rounds++;
	for (unsigned int i = 0; i < co_location->n; i++)
		readings_add(&run->rounds[i], of_round[i].mean);
	return MEASURED;
}

enum outcome measure(struct measured *measured, const struct co_location *co_location,
		     struct workers *workers, const struct engines *engines,
		     const struct run_limits *limits, const volatile bool *stop)
{
	const uint64_t begin = clock_ns();
	enum outcome outcome;
	bool done;
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return FAILED;
	*measured = (struct measured){0};
	*run = (struct run){.measured = measured,
			    .limits = limits,
			    .stop = stop,
			    .windows_until_ns = begin + limits->most_windows *
								(limits->window_ms * 1000000ull)};
	control_thread_avoid(workers, co_run_cores(co_location, engines));
	do {
		outcome = run_round(run, co_location, workers, engines);
		update_estimates(run);
		measured->elapsed_s = 1e-9 * (double)(clock_ns() - begin);
		done = outcome != MEASURED || settled(run);
		if (!done && out_of_time(run))
			outcome = TOO_NOISY;
	} while (!done && outcome == MEASURED);
	free(run);
	return outcome;
}

unsigned int measured_rejected(const struct measured *measured)
{
	unsigned int rejected = 0;

	for (int i = UNDISTURBED + 1; i < DISTURBANCES; i++)
		rejected += measured->windows[i];
	return rejected;
}

void measured_reasons(const struct measured *measured, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "%u", measured_rejected(measured));
	const char *before = " (";

	for (int i = UNDISTURBED + 1; i < DISTURBANCES && n < size; i++) {
		if (measured->windows[i] == 0)
			continue;
		n += (size_t)snprintf(text + n, size - n, "%s%s %u", before, disturbance_names[i],
				      measured->windows[i]);
		before = ", ";
	}
	if (before[0] == ',' && n < size)
		snprintf(text + n, size - n, ")");
}
