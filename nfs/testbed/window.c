#include "testbed/window.h"

#include <math.h>
#include <unistd.h>

#include "core/clock.h"

const char *const disturbance_names[DISTURBANCES] = {
	"undisturbed", "run_delay", "off_core", "steal", "neighbour", "control",
};

void snapshot_take(struct snapshot *snapshot, const struct co_run *co_run)
{
	snapshot->ns = clock_ns();
	for (unsigned int i = 0; i < co_run->co_location->n; i++)
		snapshot->done[i] = workload_done(co_run->workloads[i]);
	snapshot->reading_ns = clock_ns() - snapshot->ns;
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		snapshot->workers[i] = worker_time(&co_run->workers->worker[i]);
	core_ticks_read(CORE_TICKS, snapshot->cores);
}

/* Cores that share a cache with the run's cores but do not run it. */
static cpu_set_t idle_cores(const struct co_run *co_run)
{
	cpu_set_t idle;

	CPU_ZERO(&idle);
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		CPU_OR(&idle, &idle, &co_run->workers->worker[i].cache_neighbours);
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		CPU_CLR(co_run->workers->worker[i].core, &idle);
	return idle;
}

static enum disturbance worker_disturbed(const struct snapshot *from, const struct snapshot *to,
					 const struct co_run *co_run, unsigned int worker)
{
	const struct worker_time *begin = &from->workers[worker], *end = &to->workers[worker];
	const double ns = (double)(end->at - begin->at);
	const int core = co_run->workers->worker[worker].core;

	if ((double)(end->run_delay - begin->run_delay) > MOST_LOST * ns)
		return RUN_DELAY;
	if (to->cores[core].stolen != from->cores[core].stolen)
		return STEAL;
	if ((double)(end->on_core - begin->on_core) < (1 - MOST_LOST) * ns)
		return OFF_CORE;
	return UNDISTURBED;
}

enum disturbance window_disturbed(const struct snapshot *from, const struct snapshot *to,
				  const struct co_run *co_run)
{
	const cpu_set_t idle = idle_cores(co_run);

	if (from->reading_ns > MOST_READING_NS || to->reading_ns > MOST_READING_NS)
		return CONTROL;
	for (unsigned int i = 0; i < co_run->n_workers; i++) {
		const enum disturbance disturbance = worker_disturbed(from, to, co_run, i);

		if (disturbance != UNDISTURBED)
			return disturbance;
	}
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &idle) && to->cores[core].busy != from->cores[core].busy)
			return NEIGHBOUR;
	return UNDISTURBED;
}

double window_rate(const struct snapshot *from, const struct snapshot *to, unsigned int workload)
{
	return 1e9 * (double)(to->done[workload] - from->done[workload]) /
	       (double)(to->ns - from->ns);
}

/* Share of a window that a worker was on its core. */
static double on_core(const struct snapshot *from, const struct snapshot *to, unsigned int worker)
{
	const struct worker_time *begin = &from->workers[worker], *end = &to->workers[worker];

	return (double)(end->on_core - begin->on_core) / (double)(end->at - begin->at);
}

/* Time between the reading of the work and that of a worker's CPU time. */
static double lag_ns(const struct snapshot *snapshot, unsigned int worker)
{
	return (double)(snapshot->workers[worker].at - snapshot->ns);
}

static double busy_ticks(const struct snapshot *from, const struct snapshot *to, int core)
{
	return (double)(to->cores[core].busy - from->cores[core].busy);
}

double window_disturbance(const struct snapshot *from, const struct snapshot *to,
			  const struct co_run *co_run)
{
	const cpu_set_t idle = idle_cores(co_run);
	const double ns = (double)(to->ns - from->ns);
	const double ticks = 1e-9 * ns * (double)sysconf(_SC_CLK_TCK);
	double disturbance = 0;

	for (unsigned int i = 0; i < co_run->n_workers; i++) {
		const double share = on_core(from, to, i);

		if (!(share >= LEAST_ON_CORE))
			return INFINITY;
		disturbance += fmax(1 - share, 0) + fabs(lag_ns(to, i) - lag_ns(from, i)) / ns;
	}
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &idle))
			disturbance += fmin(busy_ticks(from, to, core) / ticks, 1);
	return disturbance;
}

double window_core_rate(const struct snapshot *from, const struct snapshot *to,
			const struct co_run *co_run, unsigned int workload)
{
	const struct load *load = &co_run->co_location->loads[workload];
	const unsigned int first = co_run_worker(co_run, workload);
	double share = 1;

	for (unsigned int i = 0; i < load_cores(load); i++)
		share = fmin(share, on_core(from, to, first + i));
	return fmin(window_rate(from, to, workload) / share, load_limit(load));
}
