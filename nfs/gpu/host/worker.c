/* The thread of a worker, and what other threads ask of it. */
#include "gpu/host/worker.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "core/clock.h"

/* The stages of a batch: filled, sent, executed, returned. */

static bool has_failed(const struct gpu_worker *worker)
{
	return atomic_load_explicit(&worker->runtime->failed, memory_order_acquire);
}

/* Print why the device is not used any more, once. */
static void give_up(struct gpu_worker *worker, const char *why)
{
	if (!atomic_exchange(&worker->runtime->failed, true))
		fprintf(stderr, "%s: %s: packets go on without %s\n", worker->function.name, why,
			worker->runtime->backend->device(worker->runtime->device));
}

/* Share the packets of a batch among its minibatches; a batch that is not full fills the first. */
static void share_out(const struct gpu_settings *settings, struct gpu_flight *flight)
{
	u32 rest = flight->n;

	flight->n_minibatches = 0;
	for (u32 i = 0; i < settings->n_minibatches && rest > 0; i++) {
		struct gpu_minibatch *to = &flight->minibatches[flight->n_minibatches++];

		*to = settings->minibatches[i];
		if (to->packets > rest)
			to->packets = rest;
		rest -= to->packets;
	}
	/* packets of a batch that was filled before it became smaller */
	flight->minibatches[flight->n_minibatches - 1].packets += rest;
}

static void prepare(struct gpu_worker *worker, struct gpu_flight *flight)
{
	const struct gpu_function *function = &worker->function;
	u8 *in = worker->runtime->backend->host(worker->runtime->device, GPU_IN) + flight->in_at;

	for (u32 i = 0; i < flight->n; i++) {
		struct gpu_slot *slot = (struct gpu_slot *)(in + (size_t)i * function->stride);

		*slot = (struct gpu_slot){0};
		flight->on_device[i] = function->prepare(function->state, &flight->items[i], slot,
							 function->stride);
		if (!flight->on_device[i])
			*slot = (struct gpu_slot){0};
	}
}

static void close_batch(struct gpu_worker *worker, struct gpu_flight *flight)
{
	u64 batching = 0;

	flight->closed_ns = clock_ns();
	flight->lost = has_failed(worker);
	for (u32 i = 0; i < flight->n; i++)
		batching += flight->closed_ns - flight->items[i].arrived_ns;
	gpu_count(worker, stage_ns[GPU_BATCHING], batching);
	gpu_count(worker, flushed, flight->n < worker->settings.batch);
	share_out(&worker->settings, flight);
	if (!flight->lost)
		prepare(worker, flight);
	flight->prepared_ns = clock_ns();
	worker->closed++;
}

/* Whether a batch is closed, now that no packet waits for it. */
static bool is_due(struct gpu_worker *worker, const struct gpu_flight *flight, u64 now_ns)
{
	return flight->n >= worker->settings.batch ||
	       now_ns - flight->items[0].arrived_ns >= worker->settings.flush_ns ||
	       atomic_load_explicit(&worker->draining, memory_order_relaxed) ||
	       atomic_load_explicit(&worker->runtime->stopping, memory_order_relaxed);
}

/* The stages of a worker's flights; each returns whether it did anything. */
static bool gpu_fill(struct gpu_worker *worker, u64 now_ns)
{
	struct gpu_flight *flight = gpu_flight_at(worker, worker->closed);
	u32 taken = 0;

	if (worker->closed - worker->returned == GPU_FLIGHTS)
		return false;
	gpu_take_settings(worker);
	if (flight->n < worker->settings.batch)
		taken = gpu_ring_take(&worker->ring, flight->items + flight->n,
				      worker->settings.batch - flight->n);
	flight->n += taken;
	if (flight->n == 0 || (taken > 0 && flight->n < worker->settings.batch))
		return taken > 0;
	if (!is_due(worker, flight, now_ns))
		return false;
	close_batch(worker, flight);
	return true;
}

/* Whether the worker has the bus, for which it asks the first time. */
static bool has_bus(struct gpu_worker *worker, enum gpu_bus bus)
{
	struct gate *gate = &worker->runtime->gates[bus];

	if (!worker->requested[bus]) {
		worker->requested[bus] = true;
		gate_request(gate, worker->number);
	}
	return gate_is_granted(gate, worker->number);
}

static void leave_bus(struct gpu_worker *worker, enum gpu_bus bus)
{
	worker->requested[bus] = false;
	gate_release(&worker->runtime->gates[bus], worker->number);
}

/* Post a task for each minibatch. */
static void post(struct gpu_worker *worker, struct gpu_flight *flight)
{
	struct gpu_control *control = worker->runtime->control;
	const u32 stride = worker->function.stride;
	const u32 of_executor = worker->runtime->shape.packets_per_executor;
	u32 before = 0;

	for (u32 i = 0; i < flight->n_minibatches; i++) {
		const struct gpu_minibatch *minibatch = &flight->minibatches[i];
		const u64 first = worker->first + before;
		const struct gpu_task task = {
			.nf = worker->function.nf,
			.n = minibatch->packets,
			.in_at = flight->in_at + before * stride,
			.in_stride = stride,
			.out_at = flight->out_at + before * stride,
			.out_stride = stride,
			.state_at = worker->state_at,
			.first_low = (u32)first,
			.first_high = (u32)(first >> 32),
		};

		gpu_post(control, minibatch->sm, flight->slot, &task);
		before += minibatch->packets;
		gpu_count(worker, parts, (minibatch->packets + of_executor - 1) / of_executor);
	}
	gpu_count(worker, tasks, flight->n_minibatches);
}

static bool gpu_send(struct gpu_worker *worker)
{
	struct gpu_flight *flight = gpu_flight_at(worker, worker->sent);
	const size_t bytes = (size_t)flight->n * worker->function.stride;
	struct gpu_runtime *runtime = worker->runtime;

	if (worker->sent == worker->closed)
		return false;
	if (!flight->lost) {
		if (!has_bus(worker, GPU_TO_DEVICE))
			return false;
		flight->granted_ns = clock_ns();
		flight->lost =
			!runtime->backend->copy_in(runtime->device, GPU_IN, flight->in_at, bytes);
		leave_bus(worker, GPU_TO_DEVICE);
		flight->posted_ns = clock_ns();
		if (flight->lost)
			give_up(worker, "a transfer failed");
		else
			post(worker, flight);
	}
	worker->first += flight->n;
	worker->sent++;
	return true;
}

static bool is_served(struct gpu_worker *worker, const struct gpu_flight *flight)
{
	bool done = true;

	for (u32 i = 0; i < flight->n_minibatches && done; i++)
		done = gpu_is_done(worker->runtime->control, flight->minibatches[i].sm,
				   flight->slot);
	return done;
}

static bool gpu_await(struct gpu_worker *worker, u64 now_ns)
{
	struct gpu_flight *flight = gpu_flight_at(worker, worker->executed);
	const u64 patience_ns = worker->runtime->patience_ns;

	if (worker->executed == worker->sent)
		return false;
	if (!flight->lost && !is_served(worker, flight)) {
		if (patience_ns == 0 || now_ns < flight->posted_ns + patience_ns)
			return false;
		flight->lost = true;
		give_up(worker, "no executor has answered in time");
	}
	flight->done_ns = clock_ns();
	worker->executed++;
	return true;
}

static void count_stages(struct gpu_worker *worker, const struct gpu_flight *flight, u64 back_ns,
			 u64 end_ns)
{
	const u64 n = flight->n;

	gpu_count(worker, stage_ns[GPU_PRE_POST],
		  n * (flight->prepared_ns - flight->closed_ns + end_ns - back_ns));
	gpu_count(worker, stage_ns[GPU_TRANSFER_WAIT],
		  n * (flight->granted_ns - flight->prepared_ns));
	gpu_count(worker, stage_ns[GPU_TRANSFER], n * (flight->posted_ns - flight->granted_ns));
	gpu_count(worker, stage_ns[GPU_KERNEL], n * (flight->done_ns - flight->posted_ns));
	gpu_count(worker, stage_ns[GPU_RETURN], n * (back_ns - flight->done_ns));
}

/* Give packets back with their results. */
static void finish(struct gpu_worker *worker, struct gpu_flight *flight)
{
	const struct gpu_function *function = &worker->function;
	const u8 *out =
		worker->runtime->backend->host(worker->runtime->device, GPU_OUT) + flight->out_at;
	u32 without = 0;

	for (u32 i = 0; i < flight->n; i++) {
		const bool has_result = !flight->lost && flight->on_device[i];
		const struct gpu_slot *result =
			(const struct gpu_slot *)(out + (size_t)i * function->stride);

		function->finish(function->state, &flight->items[i], has_result ? result : NULL);
		without += !has_result;
	}
	gpu_count(worker, without_device, without);
	gpu_count(worker, packets, flight->n);
	gpu_count(worker, batches, 1);
}

static bool gpu_return(struct gpu_worker *worker)
{
	struct gpu_flight *flight = gpu_flight_at(worker, worker->returned);
	const size_t bytes = (size_t)flight->n * worker->function.stride;
	struct gpu_runtime *runtime = worker->runtime;
	u64 back_ns;

	if (worker->returned == worker->executed)
		return false;
	if (!flight->lost) {
		if (!has_bus(worker, GPU_FROM_DEVICE))
			return false;
		flight->lost =
			!runtime->backend->copy_out(runtime->device, flight->out_at, bytes);
		leave_bus(worker, GPU_FROM_DEVICE);
		if (flight->lost)
			give_up(worker, "a transfer failed");
	}
	back_ns = clock_ns();
	finish(worker, flight);
	if (!flight->lost)
		count_stages(worker, flight, back_ns, clock_ns());
	atomic_fetch_add_explicit(&worker->finished, flight->n, memory_order_release);
	flight->n = 0;
	worker->returned++;
	return true;
}

/*
 * Keep the calling thread on a core of its own; false if there are too few for `n` threads, with
 * one more for everything else.
 */
static bool gpu_pin(unsigned int thread, unsigned int n)
{
	cpu_set_t allowed, own;
	unsigned int seen = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
	    (unsigned int)CPU_COUNT(&allowed) <= n)
		return false;
	CPU_ZERO(&own);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		/* the first one is for the thread that submits */
		if (CPU_ISSET(core, &allowed) && seen++ == thread + 1)
			CPU_SET(core, &own);
	}
	return pthread_setaffinity_np(pthread_self(), sizeof(own), &own) == 0;
}

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
