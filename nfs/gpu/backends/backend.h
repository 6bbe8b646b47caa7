/*
 * Where kernels run: one file for each engine, which registers itself.
 *
 * A device has four arenas. The host writes and reads its copies of `in`, `out` and `state`
 * (gpu_host()), and the device its own; copy_in() and copy_out() move bytes between them, in two
 * directions at once, as two buses. `control` is one memory that both see while a kernel runs. An
 * engine whose device is the host copies all the same.
 *
 * Several threads may copy at once, one a direction; only one launches.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpu/kernels/task.h"

#define GPU_ARENA_ALIGNMENT 64

enum gpu_arena { GPU_IN, GPU_OUT, GPU_STATE, GPU_CONTROL, GPU_ARENAS };

/* Bytes of each arena, below 4 GiB. */
struct gpu_sizes {
	size_t bytes[GPU_ARENAS];
};

/* A kernel that stays: `sms` times `executors_per_sm` groups, with tables in `control`. */
struct gpu_launch {
	u32 sms, executors_per_sm;
};

struct gpu_backend {
	const char *name; /* "plain", "opencl", "cuda" */
	const char *help;

	/* Whether there is a device for it. */
	bool (*present)(void);
	/* NULL after printing why: no such device, no memory. */
	void *(*open)(const struct gpu_sizes *sizes);
	/* What it runs on, for reports: "PoCL on cpu-haswell". */
	const char *(*device)(const void *device);
	/* The host's copy of an arena; of `control` the only one. */
	u8 *(*host)(void *device, enum gpu_arena arena);
	/* Bytes of `in` or `state` to the device, waiting for it; false after printing why. */
	bool (*copy_in)(void *device, enum gpu_arena arena, size_t at, size_t n);
	/* Bytes of `out` from the device. */
	bool (*copy_out)(void *device, size_t at, size_t n);
	/* Run one task with at most `groups` groups and wait for it. */
	bool (*launch_once)(void *device, const struct gpu_task *task, u32 groups);
	/* Start the kernel that stays, without waiting; NULL where there is none. */
	bool (*launch_persistent)(void *device, const struct gpu_launch *launch);
	/* Wait until it has ended, which the host's tables in `control` made it do. */
	bool (*wait)(void *device);
	void (*close)(void *device);

	struct gpu_backend *next;
};

void gpu_backend_register(struct gpu_backend *backend);

/* The engines of the build in the order of their names; NULL after the last. */
const struct gpu_backend *gpu_backend_first(void);
/* NULL if the build lacks it. */
const struct gpu_backend *gpu_backend_find(const char *name);

/* The backend of a file that has these functions. */
#define GPU_BACKEND(of, backend_help)                                                              \
	static struct gpu_backend of##_backend = {                                                 \
		.name = #of,                                                                       \
		.help = backend_help,                                                              \
		.present = present,                                                                \
		.open = open_##of,                                                                 \
		.device = device_of,                                                               \
		.host = host_of,                                                                   \
		.copy_in = copy_in,                                                                \
		.copy_out = copy_out,                                                              \
		.launch_once = launch_once,                                                        \
		.launch_persistent = of##_launch,                                                  \
		.wait = of##_wait,                                                                 \
		.close = close_##of,                                                               \
	};                                                                                         \
	__attribute__((constructor)) static void register_##of##_backend(void)                     \
	{                                                                                          \
		gpu_backend_register(&of##_backend);                                               \
	}
