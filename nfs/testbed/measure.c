#include "testbed/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "testbed/statistics.h"

#define WARM_MS 50
#define POLL_MS 5
#define CALM_ROUNDS 2

struct run {
	struct measured *measured;
	struct crew crew;
	const struct patience *patience;
	const volatile bool *stop;
	struct readings rounds[MOST_LOADS], windows[MOST_LOADS];
	unsigned int calm; /* rounds in a row after which all errors were small enough */
	struct moment moments[2];
	uint64_t windows_until_ns; /* when the time for windows is gone */
};

static void sleep_ms(unsigned int ms)
{
	const struct timespec span = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&span, NULL);
}

/* The first load with a table that is not filled yet, or NULL. */
static const struct load *unfilled(const struct crew *crew)
{
	for (unsigned int i = 0; i < crew->company->n; i++)
		if (workload_done(crew->workloads[i]) < load_fill(&crew->company->loads[i]))
			return &crew->company->loads[i];
	return NULL;
}

/*
 * Until every table is filled and every cache has seen some of it; whether that came to pass. It
 * takes what the tables' sizes take, and none of the windows' time.
 */
static bool warm_up(struct run *run)
{
	const uint64_t begin = clock_ns();
	const struct load *load;

	while ((load = unfilled(&run->crew)) && !*run->stop && clock_ns() < run->patience->until_ns)
		sleep_ms(POLL_MS);
	sleep_ms(WARM_MS);
	run->windows_until_ns += clock_ns() - begin;
	if (load && !*run->stop)
		fprintf(stderr, "testbed: %s has not met its %u flows\n", load_name(load),
			load->traffic.flows);
	return !load;
}

static unsigned int windows_seen(const struct measured *measured)
{
	return measured->windows[UNDISTURBED] + measured_rejected(measured);
}

/* Whether there is no time for another window, or none is left. */
static bool spent(const struct run *run)
{
	return windows_seen(run->measured) >= run->patience->most_windows ||
	       clock_ns() >= RTE_MIN(run->windows_until_ns, run->patience->until_ns);
}

/* Windows until enough of them are undisturbed; whether that came to pass. */
static bool take_windows(struct run *run, unsigned int wanted, struct readings *of_round)
{
	struct moment *from = &run->moments[0], *to = &run->moments[1];

	moment_take(from, &run->crew);
	do {
		enum disturbance disturbance;
		struct moment *swap = from;

		sleep_ms(run->patience->window_ms);
		moment_take(to, &run->crew);
		disturbance = window_disturbed(from, to, &run->crew);
		run->measured->windows[disturbance]++;
		for (unsigned int i = 0; disturbance == UNDISTURBED && i < run->crew.company->n;
		     i++) {
			const double rate = window_rate(from, to, i);

			readings_add(&of_round[i], rate);
			readings_add(&run->windows[i], rate);
		}
		from = to;
		to = swap;
	} while (of_round[0].n < wanted && !spent(run) && !*run->stop);
	return of_round[0].n >= wanted;
}

static void sum_up(struct run *run)
{
	for (unsigned int i = 0; i < run->crew.company->n; i++) {
		const double error = fmax(readings_standard_error(&run->rounds[i]),
					  readings_standard_error(&run->windows[i]));

		run->measured->per_s[i] = run->rounds[i].mean;
		run->measured->standard_error_pct[i] = 100 * error / run->rounds[i].mean;
	}
}

static bool small_enough(const struct run *run)
{
	for (unsigned int i = 0; i < run->crew.company->n; i++)
		if (!(run->measured->standard_error_pct[i] <= run->patience->standard_error_pct))
			return false;
	return true;
}

/* Rounds that agree by chance end a run too early, with an error that is told too small. */
static bool settled(struct run *run)
{
	run->calm = small_enough(run) ? run->calm + 1 : 0;
	return run->measured->rounds >= LEAST_ROUNDS && run->calm >= CALM_ROUNDS;
}

/* A round of new instances; what it came to is kept when it was whole. */
static enum verdict one_round(struct run *run, const struct company *company,
			      struct workers *workers, const struct engines *engines)
{
	const unsigned int wanted =
		(run->patience->least_windows + LEAST_ROUNDS - 1) / LEAST_ROUNDS;
	struct readings of_round[MOST_LOADS] = {0};
	bool warm, whole;

	if (crew_start(&run->crew, company, workers, engines) < 0)
		return FAILED;
	warm = warm_up(run);
	whole = warm && take_windows(run, wanted, of_round);
	crew_stop(&run->crew);
	if (!whole)
		return *run->stop ? INTERRUPTED : warm ? TOO_NOISY : TOO_SLOW;
	run->measured->rounds++;
	for (unsigned int i = 0; i < company->n; i++)
		readings_add(&run->rounds[i], of_round[i].mean);
	return MEASURED;
}

enum verdict measure(struct measured *measured, const struct company *company,
		     struct workers *workers, const struct engines *engines,
		     const struct patience *patience, const volatile bool *stop)
{
	const uint64_t begin = clock_ns();
	enum verdict verdict;
	bool done;
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return FAILED;
	*measured = (struct measured){0};
	*run = (struct run){.measured = measured,
			    .patience = patience,
			    .stop = stop,
			    .windows_until_ns = begin + patience->most_windows *
								(patience->window_ms * 1000000ull)};
	workers_stand_aside(workers, crew_cores(company, engines));
	do {
		verdict = one_round(run, company, workers, engines);
		sum_up(run);
		measured->elapsed_s = 1e-9 * (double)(clock_ns() - begin);
		done = verdict != MEASURED || settled(run);
		if (!done && spent(run))
			verdict = TOO_NOISY;
	} while (!done && verdict == MEASURED);
	free(run);
	return verdict;
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
