#include "testbed/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "testbed/best_effort.h"

#define WARM_MS 50
#define POLL_MS 5

/* How a round ended. */
enum round {
	ROUND_UNDISTURBED, /* with enough undisturbed windows */
	ROUND_DISTURBED,
	ROUND_COLD, /* tables were not filled in time */
	ROUND_FAILED,
	ROUND_INTERRUPTED,
};

struct run {
	struct measured *measured;
	struct co_run co_run;
	const struct run_limits *limits;
	const volatile bool *stop;
	struct rounds rounds;
	struct ending ending;
	struct best_effort effort;
	struct ending effort_ending;
	struct round_windows windows; /* of the current round, for a best effort */
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
		if (!workload_filled(co_run->workloads[i]))
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
	for (unsigned int i = 0; i < run->co_run.co_location->n; i++)
		workload_begin(run->co_run.workloads[i]);
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

/*
 * Whether the limit of windows or of time is reached. Windows may take several times as long on a
 * busy machine: a best effort has the fewest rounds all the same, until its deadline.
 */
static bool out_of_time(const struct run *run)
{
	const uint64_t now = clock_ns();

	if (run->limits->best_effort && run->effort.means[0].n < LEAST_ROUNDS)
		return now >= run->limits->until_ns;
	return windows_taken(run->measured) >= run->limits->most_windows ||
	       now >= RTE_MIN(run->windows_until_ns, run->limits->until_ns);
}

/* Windows that a run of the fewest rounds has for each. */
static unsigned int windows_of_a_round(const struct run_limits *limits)
{
	return RTE_MIN(limits->most_windows / LEAST_ROUNDS, (unsigned int)ROUND_WINDOWS);
}

/*
 * Whether a best effort does better with new rounds: this one had its share of all windows, or so
 * few of them are undisturbed that its share will not be enough.
 */
static bool hopeless(const struct run *run, unsigned int undisturbed, unsigned int taken,
		     unsigned int required)
{
	const unsigned int share = windows_of_a_round(run->limits);

	return run->limits->best_effort &&
	       (taken >= share ||
		(taken >= PATIENCE_WINDOWS && undisturbed * share < required * taken));
}

/*
 * What a function carries at most, packets per second. In a window it may carry more, which waited
 * before; a run that begins with such windows would seem to carry more than is offered.
 */
static double most_carried(const struct load *load)
{
	return load->nf ? load_limit(load) : INFINITY;
}

static void add_window(struct run *run, const struct snapshot *from, const struct snapshot *to,
		       enum disturbance disturbance, struct readings *of_round)
{
	const struct co_run *co_run = &run->co_run;
	double core_rates[MOST_LOADS];

	run->measured->windows[disturbance]++;
	for (unsigned int i = 0; i < co_run->co_location->n; i++) {
		const double slowness = window_slowness(from, to, co_run, i);
		const double counted = window_rate(from, to, i);
		const double most = fmax(most_carried(&co_run->co_location->loads[i]), counted);
		const double rate = fmin(slowness * counted, most);

		core_rates[i] = slowness * window_core_rate(from, to, co_run, i);
		if (disturbance != UNDISTURBED)
			continue;
		readings_add(&of_round[i], rate);
		readings_add(&run->rounds.windows[i], rate);
	}
	if (run->limits->best_effort)
		round_windows_add(&run->windows, window_disturbance(from, to, co_run), core_rates,
				  co_run->co_location->n);
}

/* Take windows until `required` of them are undisturbed; false if the round ends before. */
static bool take_windows(struct run *run, unsigned int required, struct readings *of_round)
{
	struct snapshot *from = &run->snapshots[0], *to = &run->snapshots[1];
	unsigned int taken = 0;

	snapshot_take(from, &run->co_run);
	do {
		struct snapshot *swap = from;

		sleep_ms(run->limits->window_ms);
		snapshot_take(to, &run->co_run);
		window_learn(from, to, &run->co_run);
		add_window(run, from, to, window_disturbed(from, to, &run->co_run), of_round);
		taken++;
		from = to;
		to = swap;
	} while (of_round[0].n < required && !hopeless(run, of_round[0].n, taken, required) &&
		 !out_of_time(run) && !*run->stop);
	return of_round[0].n >= required;
}

/* Take over the estimates of undisturbed rounds, or of the best effort; the largest error. */
static double estimate(struct run *run, bool best_effort)
{
	const struct readings *means = best_effort ? run->effort.means : run->rounds.means;
	struct measured *measured = run->measured;
	double largest = 0;

	measured->rounds = means[0].n;
	for (unsigned int i = 0; i < run->co_run.co_location->n; i++) {
		const double error = best_effort ? best_effort_error_pct(&run->effort, i)
						 : rounds_error_pct(&run->rounds, i);

		measured->per_s[i] =
			fmin(means[i].mean, most_carried(&run->co_run.co_location->loads[i]));
		measured->standard_error_pct[i] = error;
		largest = isfinite(error) ? fmax(largest, error) : INFINITY;
	}
	return largest;
}

/* Run one round with new instances. */
static enum round run_round(struct run *run, const struct co_location *co_location,
			    struct workers *workers, const struct engines *engines)
{
	const unsigned int required =
		(run->limits->least_windows + LEAST_ROUNDS - 1) / LEAST_ROUNDS;
	struct readings of_round[MOST_LOADS] = {0};
	bool warm, complete;

	if (co_run_start(&run->co_run, co_location, workers, engines) < 0)
		return ROUND_FAILED;
	run->windows.n = 0;
	warm = warm_up(run);
	complete = warm && take_windows(run, required, of_round);
	co_run_stop(&run->co_run, run->measured->results);
	if (!complete && *run->stop)
		return ROUND_INTERRUPTED;
	if (!warm)
		return ROUND_COLD;
	for (unsigned int i = 0; complete && i < co_location->n; i++)
		readings_add(&run->rounds.means[i], of_round[i].mean);
	best_effort_add(&run->effort, &run->windows, required, co_location->n);
	return complete ? ROUND_UNDISTURBED : ROUND_DISTURBED;
}

/*
 * Whether the throughputs are accurate enough after a round, and in which way. A best effort ends
 * a run early only if no round was undisturbed: else there may be enough of them in time.
 */
static bool settled(struct run *run, enum round round, enum outcome *outcome)
{
	const double limit = run->limits->standard_error_pct;

	*outcome = round == ROUND_UNDISTURBED ? MEASURED : BEST_EFFORT;
	if (round == ROUND_UNDISTURBED)
		return ending_reached(&run->ending, estimate(run, false), limit);
	return round == ROUND_DISTURBED && run->limits->best_effort && run->ending.rounds == 0 &&
	       ending_reached(&run->effort_ending, estimate(run, true), limit);
}

/* The outcome when a limit is reached. */
static enum outcome at_limit(struct run *run, enum round last)
{
	if (run->limits->best_effort && isfinite(estimate(run, true)))
		return BEST_EFFORT;
	estimate(run, false);
	return last == ROUND_COLD ? TOO_SLOW : TOO_NOISY;
}

/* Whether the run ends after this round; `*outcome` is then its outcome. */
static bool ended(struct run *run, enum round round, enum outcome *outcome)
{
	if (round == ROUND_FAILED || round == ROUND_INTERRUPTED) {
		*outcome = round == ROUND_FAILED ? FAILED : INTERRUPTED;
		return true;
	}
	if (settled(run, round, outcome))
		return true;
	if (round != ROUND_COLD && !out_of_time(run))
		return false;
	*outcome = at_limit(run, round);
	return true;
}

enum outcome measure(struct measured *measured, const struct co_location *co_location,
		     struct workers *workers, const struct engines *engines,
		     const struct run_limits *limits, const volatile bool *stop)
{
	const uint64_t begin = clock_ns();
	enum outcome outcome;
	enum round round;
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return FAILED;
	*measured = (struct measured){0};
	run->measured = measured;
	run->limits = limits;
	run->stop = stop;
	run->windows_until_ns = begin + limits->most_windows * (limits->window_ms * 1000000ull);
	windows_begin(limits->shared_machine);
	control_thread_avoid(workers, co_run_cores(co_location, engines));
	do {
		round = run_round(run, co_location, workers, engines);
		measured->elapsed_s = 1e-9 * (double)(clock_ns() - begin);
	} while (!ended(run, round, &outcome));
	free(run);
	return outcome;
}

double measured_disturbed_pct(const struct measured *measured)
{
	const unsigned int rejected = measured_rejected(measured);
	const unsigned int taken = measured->windows[UNDISTURBED] + rejected;

	return taken ? 100.0 * rejected / taken : 0;
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
