#include "testbed/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "core/clock.h"

#define WORKER_PRIORITY 10
#define CONTROL_PRIORITY 11 /* it wakes up briefly, perhaps on a worker's core */

static cpu_set_t allowed; /* the process's cores before any thread was pinned */

/* Give the calling thread realtime priority; its children do not inherit it. */
static int set_realtime_priority(int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0)
		return 0;
	fprintf(stderr, "testbed: --realtime is not allowed: %s\n", strerror(errno));
	return -errno;
}

/* A kernel without schedstat reports zeros for a running thread. */
static int open_schedstat(void)
{
	char path[64], line[96];
	unsigned long runs = 0;
	ssize_t n;
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)gettid());
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		fprintf(stderr, "testbed: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	n = pread(file, line, sizeof(line) - 1, 0);
	line[n > 0 ? n : 0] = '\0';
	if (sscanf(line, "%*u %*u %lu", &runs) == 1 && runs > 0)
		return file;
	fprintf(stderr, "testbed: %s: schedstat is not enabled in this kernel\n", path);
	close(file);
	return -ENOTSUP;
}

/* Open what only the thread itself can open. */
static int init_worker(void *argument)
{
	struct worker *worker = argument;

	worker->schedstat = open_schedstat();
	if (worker->schedstat < 0)
		return worker->schedstat;
	return -pthread_getcpuclockid(pthread_self(), &worker->clock);
}

static int init_realtime_worker(void *argument)
{
	int result = init_worker(argument);

	return result < 0 ? result : set_realtime_priority(WORKER_PRIORITY);
}

static int start_worker(struct worker *worker, bool realtime)
{
	int result = rte_eal_remote_launch(realtime ? init_realtime_worker : init_worker, worker,
					   worker->lcore);

	if (result == 0)
		result = worker_wait(worker);
	if (result < 0)
		fprintf(stderr, "testbed: cannot start a worker on core %d: %s\n", worker->core,
			strerror(-result));
	return result;
}

int workers_start(struct workers *workers, const struct machine *machine,
		  const struct eal_config *eal_config)
{
	const bool realtime = eal_config->realtime;
	int result;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	result = eal_start(machine, eal_config);
	*workers = (struct workers){.realtime = realtime, .ports = eal_config->ports};
	for (; result == 0 && workers->n < machine->n_cores; workers->n++) {
		struct worker *worker = &workers->worker[workers->n];

		const int core = machine->cores[workers->n];

		*worker = (struct worker){.lcore = workers->n + 1,
					  .core = core,
					  .cache_neighbours =
						  machine_cache_neighbours(machine, core)};
		result = start_worker(worker, realtime);
	}
	if (result == 0 && realtime)
		result = set_realtime_priority(CONTROL_PRIORITY);
	return result;
}

void workers_stop(struct workers *workers)
{
	for (unsigned int i = 0; i < workers->n; i++)
		if (workers->worker[i].schedstat >= 0)
			close(workers->worker[i].schedstat);
	ports_stop(&workers->ports);
	rte_eal_cleanup();
}

int worker_wait(const struct worker *worker)
{
	const struct timespec pause = {.tv_nsec = 100000};

	while (rte_eal_get_lcore_state(worker->lcore) == RUNNING)
		nanosleep(&pause, NULL);
	return rte_eal_wait_lcore(worker->lcore);
}

struct worker_time worker_time(const struct worker *worker)
{
	struct worker_time time = {.at = clock_ns()};
	struct timespec on_core;
	char line[96];
	ssize_t n;

	if (clock_gettime(worker->clock, &on_core) == 0)
		time.on_core = (uint64_t)on_core.tv_sec * 1000000000ull + (uint64_t)on_core.tv_nsec;
	n = pread(worker->schedstat, line, sizeof(line) - 1, 0);
	if (n > 0) {
		char *rest;

		line[n] = '\0';
		strtoull(line, &rest, 10);
		time.run_delay = strtoull(rest, NULL, 10);
	}
	return time;
}

void control_thread_avoid(const struct workers *workers, unsigned int busy)
{
	cpu_set_t free_cores = allowed;

	for (unsigned int i = 0; i < busy; i++)
		CPU_CLR(workers->worker[i].core, &free_cores);
	if (CPU_COUNT(&free_cores) == 0)
		free_cores = allowed;
	if (sched_setaffinity(0, sizeof(free_cores), &free_cores) < 0)
		fprintf(stderr, "testbed: cannot move the control thread: %s\n", strerror(errno));
}
