#include "testbed/window.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

const char *const disturbance_names[DISTURBANCES] = {
	"undisturbed", "run_delay", "off_core", "steal", "neighbour",
};

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STOLEN, FIELDS };

static void read_core(const char *line, struct core_ticks *cores)
{
	char *rest;
	long core = strtol(line + 3, &rest, 10);
	uint64_t fields[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		fields[i] = strtoull(rest, &rest, 10);
	if (core < 0 || core >= CPU_SETSIZE)
		return;
	cores[core].busy = fields[USER] + fields[NICE] + fields[SYSTEM] + fields[IRQ] +
			   fields[SOFTIRQ] + fields[STOLEN];
	cores[core].stolen = fields[STOLEN];
}

/* The lines "cpu0 ..." of /proc/stat, which stand first. */
static void read_cores(struct core_ticks *cores)
{
	char text[MACHINE_MOST_CORES * 128];
	int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	char *line = text;

	if (file >= 0)
		close(file);
	text[n > 0 ? n : 0] = '\0';
	while ((line = strstr(line, "\ncpu")) != NULL) {
		line++;
		if (line[3] >= '0' && line[3] <= '9')
			read_core(line, cores);
	}
}

void moment_take(struct moment *moment, const struct crew *crew)
{
	for (unsigned int i = 0; i < crew->company->n; i++)
		moment->done[i] = workload_done(crew->workloads[i]);
	moment->ns = clock_ns();
	for (unsigned int i = 0; i < crew->n_workers; i++)
		moment->workers[i] = worker_time(&crew->workers->worker[i]);
	read_cores(moment->cores);
}

/* The cores that share a cache with the run's, and have no part in it. */
static cpu_set_t idle_cores(const struct crew *crew)
{
	cpu_set_t idle;

	CPU_ZERO(&idle);
	for (unsigned int i = 0; i < crew->n_workers; i++)
		CPU_OR(&idle, &idle, &crew->workers->worker[i].beside);
	for (unsigned int i = 0; i < crew->n_workers; i++)
		CPU_CLR(crew->workers->worker[i].core, &idle);
	return idle;
}

static enum disturbance worker_disturbed(const struct moment *from, const struct moment *to,
					 const struct crew *crew, unsigned int worker)
{
	const struct worker_time *begin = &from->workers[worker], *end = &to->workers[worker];
	const double ns = (double)(to->ns - from->ns);
	const int core = crew->workers->worker[worker].core;

	if ((double)(end->run_delay - begin->run_delay) > MOST_LOST * ns)
		return RUN_DELAY;
	if (to->cores[core].stolen != from->cores[core].stolen)
		return STEAL;
	if ((double)(end->on_core - begin->on_core) < (1 - MOST_LOST) * ns)
		return OFF_CORE;
	return UNDISTURBED;
}

enum disturbance window_disturbed(const struct moment *from, const struct moment *to,
				  const struct crew *crew)
{
	const cpu_set_t idle = idle_cores(crew);

	for (unsigned int i = 0; i < crew->n_workers; i++) {
		const enum disturbance disturbance = worker_disturbed(from, to, crew, i);

		if (disturbance != UNDISTURBED)
			return disturbance;
	}
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &idle) && to->cores[core].busy != from->cores[core].busy)
			return NEIGHBOUR;
	return UNDISTURBED;
}

double window_rate(const struct moment *from, const struct moment *to, unsigned int workload)
{
	return 1e9 * (double)(to->done[workload] - from->done[workload]) /
	       (double)(to->ns - from->ns);
}
