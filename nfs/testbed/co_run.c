#include "testbed/co_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "accelerators/accelerator.h"
#include "core/clock.h"

/* Add what a chain did in a round. No core may be in it any more. */
static void add_chain(struct load_result *result, const struct chain_workload *workload)
{
	const struct chain *chain = chain_workload_chain(workload);
	const struct latencies latencies = chain_workload_latencies(workload);

	for (unsigned int i = 0; i < chain_functions(chain); i++) {
		const struct chain_counts counts = chain_counts_of(chain, i);

		result->stages[i].entered += counts.entered;
		result->stages[i].sent += counts.sent;
		result->stages[i].sent_back += counts.sent_back;
	}
	result->lost += chain_lost(chain);
	latencies_merge(&result->latencies, &latencies);
}

double load_result_leaving(const struct load_result *result, unsigned int stage)
{
	const uint64_t entered = result->stages[0].entered;

	return entered ? (double)result->stages[stage].sent / (double)entered : 0;
}

double load_result_dropped_pct(const struct load_result *result, unsigned int stage)
{
	const struct chain_counts *counts = &result->stages[stage];
	const uint64_t passed = counts->sent + counts->sent_back;

	if (passed >= counts->entered) /* it makes several packets of one, or none entered */
		return 0;
	return 100.0 * (double)(counts->entered - passed) / (double)counts->entered;
}

#define PAGE 4096
#define MOST_SHIFT 512 /* pages */

/* The work of one worker. */
struct task {
	const bool *stop;
	unsigned int n;
	struct workload *workloads[MOST_LOADS];
	unsigned int core; /* which of the load's cores */
	struct probe *probe;
	/* Without workloads: the engine to serve; NULL: keep the core busy. */
	struct accelerator *engine;
};

static int work(void *argument)
{
	const struct task *task = argument;
	const double us_per_cycle = 1e6 / clock_tsc_hz();

	while (!__atomic_load_n(task->stop, __ATOMIC_RELAXED)) {
		for (unsigned int i = 0; i < task->n; i++)
			workload_step(task->workloads[i], task->core,
				      (uint64_t)((double)rte_rdtsc() * us_per_cycle));
		probe_take(task->probe);
	}
	for (unsigned int i = 0; i < task->n; i++)
		workload_flush(task->workloads[i]);
	return 0;
}

static int serve(void *argument)
{
	const struct task *task = argument;

	accelerator_serve_until(task->engine, task->stop);
	return 0;
}

static int busy_wait(void *argument)
{
	const struct task *task = argument;

	while (!__atomic_load_n(task->stop, __ATOMIC_RELAXED))
		rte_pause();
	return 0;
}

unsigned int co_run_cores(const struct co_location *co_location, const struct engines *engines)
{
	const unsigned int kinds = co_location_accelerators(co_location);

	return (engines->clients_share_a_core ? 1 : co_location_cores(co_location)) +
	       (unsigned int)__builtin_popcount(kinds);
}

static void assign_core(struct co_run *co_run, unsigned int workload, unsigned int core)
{
	struct task *task = &co_run->tasks[co_run_worker(co_run, workload) + core];
	struct workload *copy = workload_on(co_run->workloads[workload], core);

	task->stop = &co_run->stop_clients;
	task->core = core;
	task->probe = &co_run->probes[task - co_run->tasks];
	if (copy)
		task->workloads[task->n++] = copy;
}

static void assign(struct co_run *co_run, const struct engines *engines)
{
	const unsigned int kinds = co_location_accelerators(co_run->co_location);

	co_run->clients_share_a_core = engines->clients_share_a_core;
	for (unsigned int i = 0; i < co_run->co_location->n; i++) {
		for (unsigned int core = 0; core < load_cores(&co_run->co_location->loads[i]);
		     core++)
			assign_core(co_run, i, core);
	}
	co_run->n_workers = engines->clients_share_a_core
				    ? 1
				    : co_location_cores(co_run->co_location);
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!(kinds & NF_USES(kind)))
			continue;
		co_run->tasks[co_run->n_workers].stop = &co_run->stop_engines;
		co_run->tasks[co_run->n_workers++].engine = engines->kinds[kind];
	}
	while (co_run->workers->realtime && co_run->n_workers < co_run->workers->n)
		co_run->tasks[co_run->n_workers++].stop = &co_run->stop_engines;
}

/*
 * Create the instances behind a block of memory that is freed afterwards, so that tables lie on
 * different pages in each round: the position of a table in the caches changes throughput.
 */
static int create_workloads(struct co_run *co_run, const struct engines *engines, uint64_t round)
{
	void *shift = rte_malloc(NULL, PAGE * (1 + round * 37 % MOST_SHIFT), PAGE);
	int result = 0;

	for (unsigned int i = 0; i < co_run->co_location->n && result == 0; i++) {
		co_run->workloads[i] = workload_create(&co_run->co_location->loads[i],
						       engines->kinds, round * MOST_LOADS + i);
		if (!co_run->workloads[i])
			result = -ENOMEM;
	}
	rte_free(shift);
	return result;
}

static int launch(struct co_run *co_run)
{
	for (unsigned int i = co_run->n_workers; i-- > 0;) {
		const unsigned int lcore = co_run->workers->worker[i].lcore;
		const struct task *task = &co_run->tasks[i];
		int result = rte_eal_remote_launch(task->n > 0    ? work
						   : task->engine ? serve
								  : busy_wait,
						   &co_run->tasks[i], lcore);

		if (result < 0) {
			fprintf(stderr, "testbed: cannot start lcore %u: %s\n", lcore,
				strerror(-result));
			return result;
		}
	}
	return 0;
}

int co_run_start(struct co_run *co_run, const struct co_location *co_location,
		 struct workers *workers, const struct engines *engines)
{
	int result;

	*co_run = (struct co_run){.co_location = co_location, .workers = workers};
	co_run->tasks = calloc(MOST_WORKERS, sizeof(*co_run->tasks));
	if (!co_run->tasks)
		return -ENOMEM;
	result = create_workloads(co_run, engines, workers->rounds++);
	if (result == 0) {
		assign(co_run, engines);
		result = launch(co_run);
	}
	if (result < 0)
		co_run_stop(co_run, NULL);
	return result;
}

static void wait_for(const struct co_run *co_run, bool clients)
{
	for (unsigned int i = 0; i < co_run->n_workers; i++)
		if ((co_run->tasks[i].n > 0) == clients)
			worker_wait(&co_run->workers->worker[i]);
}

/* Cores of a chain may wait for each other, so packets in it leave once all have stopped. */
static void end_workloads(struct co_run *co_run, struct load_result *results)
{
	const uint64_t now_us = (uint64_t)((double)rte_rdtsc() * 1e6 / clock_tsc_hz());

	for (unsigned int i = 0; i < co_run->co_location->n; i++) {
		const struct workload *copy = co_run->workloads[i];

		if (!copy)
			continue;
		workload_end(co_run->workloads[i], now_us);
		if (results && copy->chain)
			add_chain(&results[i], copy->chain);
		for (; results && copy; copy = copy->next)
			latencies_merge(&results[i].latencies, &copy->latencies.latencies);
	}
}

/*
 * Engines stop after the clients, which wait for their last requests. Queues are detached only
 * after the engines stopped: a preempted engine that holds the lock would block this for good.
 */
void co_run_stop(struct co_run *co_run, struct load_result *results)
{
	__atomic_store_n(&co_run->stop_clients, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < co_run->co_location->n; i++)
		if (co_run->workloads[i])
			workload_interrupt(co_run->workloads[i]);
	wait_for(co_run, true);
	end_workloads(co_run, results);
	__atomic_store_n(&co_run->stop_engines, true, __ATOMIC_RELAXED);
	wait_for(co_run, false);
	for (unsigned int i = 0; i < co_run->co_location->n; i++)
		workload_destroy(co_run->workloads[i]);
	free(co_run->tasks);
	co_run->tasks = NULL;
}
