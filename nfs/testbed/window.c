#include "testbed/window.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

const char *const disturbance_names[DISTURBANCES] = {
	"undisturbed", "run_delay", "off_core", "steal", "neighbour", "slowed", "control",
};

void snapshot_take(struct snapshot *snapshot, const struct co_run *co_run)
{
	snapshot->ns = clock_ns();
	for (unsigned int i = 0; i < co_run->co_location->n; i++)
		snapshot->done[i] = workload_done(co_run->workloads[i]);
	snapshot->reading_ns = clock_ns() - snapshot->ns;
	for (unsigned int i = 0; i < co_run->n_workers; i++) {
		const struct probe *probe = &co_run->probes[i];

		snapshot->probes[i].cycles = __atomic_load_n(&probe->cycles, __ATOMIC_RELAXED);
		snapshot->probes[i].n = __atomic_load_n(&probe->n, __ATOMIC_RELAXED);
	}
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		snapshot->workers[i] = worker_time(&co_run->workers->worker[i]);
	core_ticks_read(CORE_TICKS, snapshot->cores);
}

/* TSC cycles of a probe by core, the fastest of all windows of the run so far; 0: none yet. */
static double fastest[CPU_SETSIZE];
static bool shared; /* the machine */

/*
 * Cores that share a cache with the run's cores but do not run it. On a shared machine most of
 * them belong to others and cannot be seen, so none is looked at.
 */
static cpu_set_t idle_cores(const struct co_run *co_run)
{
	cpu_set_t idle;

	CPU_ZERO(&idle);
	if (shared)
		return idle;
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		CPU_OR(&idle, &idle, &co_run->workers->worker[i].cache_neighbours);
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		CPU_CLR(co_run->workers->worker[i].core, &idle);
	return idle;
}

/* Cycles of a probe in a window; 0 without probes. */
static double probe_cycles(const struct snapshot *from, const struct snapshot *to,
			   unsigned int worker)
{
	const uint64_t n = to->probes[worker].n - from->probes[worker].n;

	if (n == 0)
		return 0;
	return (double)(to->probes[worker].cycles - from->probes[worker].cycles) / (double)n;
}

void windows_begin(bool shared_machine)
{
	shared = shared_machine;
	if (!shared)
		memset(fastest, 0, sizeof(fastest));
}

void windows_know(double probe_cycles)
{
	for (int core = 0; core < CPU_SETSIZE; core++)
		fastest[core] = probe_cycles;
}

double windows_fastest(void)
{
	double best = 0;

	for (int core = 0; core < CPU_SETSIZE; core++)
		if (fastest[core] > 0 && (best == 0 || fastest[core] < best))
			best = fastest[core];
	return best;
}

void window_learn(const struct snapshot *from, const struct snapshot *to,
		  const struct co_run *co_run)
{
	for (unsigned int i = 0; i < co_run->n_workers; i++) {
		double *of_core = &fastest[co_run->workers->worker[i].core];
		const double cycles = probe_cycles(from, to, i);

		if (cycles > 0 && (*of_core == 0 || cycles < *of_core))
			*of_core = cycles;
	}
}

/* How many times slower than the fastest so far a worker's core was; 1 where it is not known. */
static double slowed(const struct snapshot *from, const struct snapshot *to,
		     const struct co_run *co_run, unsigned int worker)
{
	const double best = fastest[co_run->workers->worker[worker].core];
	const double cycles = probe_cycles(from, to, worker);

	return cycles > 0 && best > 0 ? fmax(cycles / best, 1) : 1;
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
	if (slowed(from, to, co_run, worker) > (shared ? MOST_SLOWED_SHARED : MOST_SLOWED))
		return SLOWED;
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

double window_slowness(const struct snapshot *from, const struct snapshot *to,
		       const struct co_run *co_run, unsigned int workload)
{
	const unsigned int cores = load_cores(&co_run->co_location->loads[workload]);
	const unsigned int first = co_run_worker(co_run, workload);
	double sum = 0;

	if (!shared)
		return 1;
	for (unsigned int i = 0; i < cores; i++)
		sum += fmin(slowed(from, to, co_run, first + i), MOST_SLOWED_SHARED);
	return sum / cores;
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
		disturbance += 1 - 1 / slowed(from, to, co_run, i);
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
	double least = 1, sum = 0;

	for (unsigned int i = 0; i < load_cores(load); i++) {
		least = fmin(least, on_core(from, to, first + i));
		sum += on_core(from, to, first + i);
	}
	return fmin(window_rate(from, to, workload) / (load->cores > 1 ? sum / load->cores : least),
		    load_limit(load));
}
