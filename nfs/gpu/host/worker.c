/* The thread of a worker, and what other threads ask of it. */
#include "gpu/host/worker.h"

#include <sched.h>
#include <time.h>

#include "core/clock.h"

#define EAGER_ROUNDS 256 /* without work, before a worker without a core of its own sleeps */

void gpu_sleep(long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	nanosleep(&time, NULL);
}

static bool is_empty(const struct gpu_worker *worker)
{
	return worker->closed == worker->returned &&
	       worker->flights[worker->closed % GPU_FLIGHTS].n == 0;
}

void *gpu_work(void *argument)
{
	struct gpu_worker *worker = argument;
	const bool alone = gpu_pin(worker->number, worker->runtime->n_workers);
	unsigned int idle = 0;

	for (;;) {
		/* before the ring is read: what was submitted before is seen */
		const bool stopping =
			atomic_load_explicit(&worker->runtime->stopping, memory_order_acquire);
		const u64 now_ns = clock_ns();
		bool busy = gpu_return(worker);

		/* later stages first: the bus is asked for as early as possible */
		busy |= gpu_await(worker, now_ns);
		busy |= gpu_send(worker);
		busy |= gpu_fill(worker, now_ns);
		if (stopping && !busy && is_empty(worker))
			return NULL;
		idle = busy ? 0 : idle + 1;
		if (idle > EAGER_ROUNDS && !alone)
			gpu_sleep(GPU_SLEEP_NS);
		else if (idle > 0 && !alone)
			sched_yield();
	}
}

bool gpu_submit(struct gpu_runtime *runtime, unsigned int number, void *packet, u64 time_us)
{
	struct gpu_worker *worker = &runtime->workers[number];
	const struct gpu_item item = {
		.packet = packet, .time_us = time_us, .arrived_ns = clock_ns()};

	if (!gpu_ring_put(&worker->ring, &item))
		return false;
	atomic_fetch_add_explicit(&worker->submitted, 1, memory_order_relaxed);
	return true;
}

void gpu_drain(struct gpu_runtime *runtime, unsigned int number)
{
	struct gpu_worker *worker = &runtime->workers[number];
	const u64 submitted = atomic_load_explicit(&worker->submitted, memory_order_relaxed);

	atomic_store_explicit(&worker->draining, true, memory_order_release);
	while (atomic_load_explicit(&worker->finished, memory_order_acquire) < submitted)
		gpu_sleep(GPU_SLEEP_NS);
	atomic_store_explicit(&worker->draining, false, memory_order_relaxed);
}

struct gpu_counts gpu_counts_of(const struct gpu_runtime *runtime, unsigned int number)
{
	const struct gpu_worker *worker = &runtime->workers[number];
	struct gpu_counts counts;
	u64 *words = (u64 *)&counts;

	for (size_t i = 0; i < sizeof(counts) / sizeof(u64); i++)
		words[i] = atomic_load_explicit(&worker->counts[i], memory_order_relaxed);
	return counts;
}
