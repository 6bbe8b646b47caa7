#include "testbed/crew.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "accelerators/accelerator.h"
#include "core/clock.h"

#define PAGE 4096
#define MOST_SHIFT 512 /* pages */

/* What a worker does. */
struct post {
	const bool *stop;
	unsigned int n;
	struct workload *workloads[MOST_LOADS];
	struct accelerator *engine; /* when there are no workloads; neither: the core is held */
};

static int work(void *argument)
{
	const struct post *post = argument;
	const double us_per_cycle = 1e6 / clock_tsc_hz();

	while (!__atomic_load_n(post->stop, __ATOMIC_RELAXED))
		for (unsigned int i = 0; i < post->n; i++)
			workload_step(post->workloads[i],
				      (uint64_t)((double)rte_rdtsc() * us_per_cycle));
	for (unsigned int i = 0; i < post->n; i++)
		workload_drain(post->workloads[i]);
	return 0;
}

static int serve(void *argument)
{
	const struct post *post = argument;

	accelerator_serve_until(post->engine, post->stop);
	return 0;
}

static int hold(void *argument)
{
	const struct post *post = argument;

	while (!__atomic_load_n(post->stop, __ATOMIC_RELAXED))
		rte_pause();
	return 0;
}

unsigned int crew_cores(const struct company *company, const struct engines *engines)
{
	const unsigned int kinds = company_accelerators(company);

	return (engines->clients_share_a_core ? 1 : company->n) +
	       (unsigned int)__builtin_popcount(kinds);
}

static void assign(struct crew *crew, const struct engines *engines)
{
	const unsigned int kinds = company_accelerators(crew->company);

	for (unsigned int i = 0; i < crew->company->n; i++) {
		struct post *post = &crew->posts[engines->clients_share_a_core ? 0 : i];

		post->stop = &crew->stop_clients;
		post->workloads[post->n++] = crew->workloads[i];
	}
	crew->n_workers = engines->clients_share_a_core ? 1 : crew->company->n;
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!(kinds & NF_USES(kind)))
			continue;
		crew->posts[crew->n_workers].stop = &crew->stop_engines;
		crew->posts[crew->n_workers++].engine = engines->kinds[kind];
	}
	while (crew->workers->realtime && crew->n_workers < crew->workers->n)
		crew->posts[crew->n_workers++].stop = &crew->stop_engines;
}

/*
 * The instances, behind a piece of memory that is given back: tables come to lie on other pages
 * every time, which the caches of a core do not treat all alike.
 */
static int create_workloads(struct crew *crew, const struct engines *engines, uint64_t round)
{
	void *shift = rte_malloc(NULL, PAGE * (1 + round * 37 % MOST_SHIFT), PAGE);
	int result = 0;

	for (unsigned int i = 0; i < crew->company->n && result == 0; i++) {
		crew->workloads[i] = workload_create(&crew->company->loads[i], engines->kinds,
						     round * MOST_LOADS + i);
		if (!crew->workloads[i])
			result = -ENOMEM;
	}
	rte_free(shift);
	return result;
}

static int launch(struct crew *crew)
{
	for (unsigned int i = crew->n_workers; i-- > 0;) {
		const unsigned int lcore = crew->workers->worker[i].lcore;
		const struct post *post = &crew->posts[i];
		int result = rte_eal_remote_launch(post->n > 0    ? work
						   : post->engine ? serve
								  : hold,
						   &crew->posts[i], lcore);

		if (result < 0) {
			fprintf(stderr, "testbed: lcore %u does not begin: %s\n", lcore,
				strerror(-result));
			return result;
		}
	}
	return 0;
}

int crew_start(struct crew *crew, const struct company *company, struct workers *workers,
	       const struct engines *engines)
{
	int result;

	*crew = (struct crew){.company = company, .workers = workers};
	crew->posts = calloc(MOST_WORKERS, sizeof(*crew->posts));
	if (!crew->posts)
		return -ENOMEM;
	result = create_workloads(crew, engines, workers->rounds++);
	if (result == 0) {
		assign(crew, engines);
		result = launch(crew);
	}
	if (result < 0)
		crew_stop(crew);
	return result;
}

static void wait_for(const struct crew *crew, bool clients)
{
	for (unsigned int i = 0; i < crew->n_workers; i++)
		if ((crew->posts[i].n > 0) == clients)
			worker_wait(&crew->workers->worker[i]);
}

/*
 * Clients drain what engines still serve, so engines stop later. Queues are detached when nobody
 * serves: a server that was preempted with its lock held would be waited for forever.
 */
void crew_stop(struct crew *crew)
{
	__atomic_store_n(&crew->stop_clients, true, __ATOMIC_RELAXED);
	wait_for(crew, true);
	__atomic_store_n(&crew->stop_engines, true, __ATOMIC_RELAXED);
	wait_for(crew, false);
	for (unsigned int i = 0; i < crew->company->n; i++)
		workload_destroy(crew->workloads[i]);
	free(crew->posts);
	crew->posts = NULL;
}
