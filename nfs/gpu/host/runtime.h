/*
 * The host's side of Grus (section IV): a worker for each network function (NF) batches its
 * packets, waits for its turn on the bus, and gives the batch in parts to executors of a kernel
 * that was launched once and stays.
 *
 * A worker is a thread, on a core of its own if there is one. Its batches overlap: one is filled
 * while earlier ones are transferred, executed and returned. Packets of an NF come back in the
 * order in which they were submitted, and every one does: what cannot go to the device, because it
 * does not fit a slot, or because the device has stopped answering, comes back without a result.
 */
#pragma once

#include "gpu/host/posting.h"
#include "gpu/host/ring.h"

#define GPU_MOST_SMS 256
#define GPU_MOST_BATCH 65536
#define GPU_FLIGHTS 4 /* batches of a worker: filled, transferred, executed, returned */

/* The part of a batch that one SM processes. */
struct gpu_minibatch {
	u32 sm, packets;
};

/* What may change while a worker runs. */
struct gpu_settings {
	u32 batch;    /* packets */
	u32 order;    /* of transfers: smaller first; no two NFs should have the same */
	u64 flush_ns; /* a batch is closed when its first packet has waited this long */
	u32 n_minibatches;
	struct gpu_minibatch minibatches[GPU_MOST_SMS]; /* add up to `batch`, one for each SM */
};

/* An NF: what its worker does with its packets. The functions run on the worker's thread. */
struct gpu_function {
	const char *name; /* for messages */
	enum gpu_nf nf;
	u32 most_batch; /* packets; the most that settings may ask for */
	u32 stride;     /* bytes of a slot, a multiple of 16 */
	u8 *tables;     /* copied to the device */
	size_t table_bytes;
	/*
	 * Write a packet into a slot of `stride` bytes, before its transfer. False: it does not go
	 * to the device, and what is in the slot is ignored.
	 */
	bool (*prepare)(void *state, const struct gpu_item *item, struct gpu_slot *slot,
			u32 stride);
	/* Take over a packet; `result` is NULL if it was not on the device. */
	void (*finish)(void *state, const struct gpu_item *item, const struct gpu_slot *result);
	void *state;
	struct gpu_settings settings; /* at first */
};

struct gpu_runtime_config {
	const struct gpu_backend *backend;
	u32 sms, executors_per_sm, packets_per_executor;
	u64 patience_ns; /* a device that has not served a task for so long is given up; 0: never */
	unsigned int n_functions;
	const struct gpu_function *functions; /* copied */
};

struct gpu_runtime;

/* Launch the kernel and start the workers, one for each function. NULL after printing why. */
struct gpu_runtime *gpu_runtime_create(const struct gpu_runtime_config *config);

/* Stop, if it was not done, and free everything. */
void gpu_runtime_destroy(struct gpu_runtime *runtime);

/*
 * Let all packets that were submitted come back, and end workers and kernel. False if the device
 * was given up. No packet is submitted from here on.
 */
bool gpu_runtime_stop(struct gpu_runtime *runtime);

/* Parts of tasks that executors served; after gpu_runtime_stop() that returned true. */
u64 gpu_runtime_served(struct gpu_runtime *runtime);

/* What the kernel runs on. */
const char *gpu_runtime_device(const struct gpu_runtime *runtime);

/*
 * Give a packet to a worker; false if it has too many. One thread at a time submits to a worker.
 */
bool gpu_submit(struct gpu_runtime *runtime, unsigned int worker, void *packet, u64 time_us);

/* Close the batch that is being filled, and wait until all submitted packets are back. */
void gpu_drain(struct gpu_runtime *runtime, unsigned int worker);

/*
 * Change settings, from any thread. They hold for the batch that is being filled, which is closed
 * if it is full by them, and for all later ones; the order also for a batch that waits for the bus.
 * False after printing each fault; nothing is changed then.
 */
bool gpu_set(struct gpu_runtime *runtime, unsigned int worker, const struct gpu_settings *settings);

/* Settings of one minibatch on each of the first SMs, as even as possible. */
struct gpu_settings gpu_settings_even(u32 batch, u32 order, u64 flush_ns, u32 sms);

/* Where the time of a packet goes. */
enum gpu_stage {
	GPU_BATCHING,      /* until its batch is closed */
	GPU_PRE_POST,      /* before and after the device */
	GPU_TRANSFER_WAIT, /* for the bus */
	GPU_TRANSFER,
	GPU_KERNEL, /* with the wait for executors */
	GPU_RETURN, /* with the wait for the bus */
	GPU_STAGES,
};

struct gpu_counts {
	u64 packets, batches, flushed; /* flushed: closed before they were full */
	u64 tasks;                     /* minibatches */
	u64 parts;                     /* of tasks: one for an executor each */
	u64 without_device;            /* packets that came back without a result */
	u64 stage_ns[GPU_STAGES];      /* summed over packets */
};

struct gpu_counts gpu_counts_of(const struct gpu_runtime *runtime, unsigned int worker);
