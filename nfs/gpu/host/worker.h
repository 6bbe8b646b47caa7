/* A worker, for the files of the runtime. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/host/gate.h"
#include "gpu/host/runtime.h"

/* Both directions of the bus. */
enum gpu_bus { GPU_TO_DEVICE, GPU_FROM_DEVICE, GPU_BUSES };

/* A batch in flight. */
struct gpu_flight {
	u32 n, slot;
	u32 in_at, out_at;
	struct gpu_item *items;
	bool *on_device; /* by item */
	u32 n_minibatches;
	struct gpu_minibatch minibatches[GPU_MOST_SMS]; /* as they were posted */
	u64 closed_ns, prepared_ns, granted_ns, posted_ns, done_ns;
	bool lost; /* without results */
};

/*
 * Flights are used in turn. Each counter says how many have passed a stage; the flight that is at a
 * stage is that number, modulo GPU_FLIGHTS.
 */
struct gpu_worker {
	struct gpu_runtime *runtime;
	unsigned int number;
	pthread_t thread;
	bool started;
	struct gpu_function function;
	u32 state_at;
	struct gpu_ring ring;
	struct gpu_flight flights[GPU_FLIGHTS];
	u32 closed, sent, executed, returned;
	bool requested[GPU_BUSES]; /* a turn at the gate */
	u64 first;                 /* packets of earlier batches */

	pthread_mutex_t lock; /* of `next` */
	struct gpu_settings settings, next;
	atomic_bool changed;

	atomic_ullong submitted, finished;
	atomic_bool draining;
	atomic_ullong counts[sizeof(struct gpu_counts) / sizeof(u64)]; /* see struct gpu_counts */
};

struct gpu_runtime {
	const struct gpu_backend *backend;
	void *device;
	struct gpu_shape shape;
	struct gpu_control *control;
	struct gate gates[GPU_BUSES];
	u64 patience_ns;
	bool launched, stopped, answered;
	atomic_bool stopping, failed;
	unsigned int n_workers;
	struct gpu_worker *workers;
};

/* The thread of a worker: ends once the runtime stops and all packets are back. */
void *gpu_work(void *worker);

/* Take over settings that have changed. */
void gpu_take_settings(struct gpu_worker *worker);
/* Print each fault; returns whether there is none. */
bool gpu_settings_check(const struct gpu_runtime *runtime, const struct gpu_function *function,
			const struct gpu_settings *settings);

#define GPU_SLEEP_NS 20000 /* of a thread that has nothing to do */
void gpu_sleep(long ns);

/* Add to a member of struct gpu_counts. */
#define gpu_count(worker, member, n)                                                               \
	atomic_fetch_add_explicit(                                                                 \
		&(worker)->counts[offsetof(struct gpu_counts, member) / sizeof(u64)], n,           \
		memory_order_relaxed)

static inline struct gpu_flight *gpu_flight_at(struct gpu_worker *worker, u32 passed)
{
	return &worker->flights[passed % GPU_FLIGHTS];
}
