/* The host as a device, for the files that run kernels on it. */
#pragma once

#include <pthread.h>

#include "gpu/backends/arenas.h"

struct plain {
	struct gpu_sizes sizes;
	u8 *host[GPU_ARENAS], *device[GPU_ARENAS];
	struct plain_executor *executors; /* of the kernel that stays; NULL while there is none */
	u32 n_executors;
};

/* A group of the kernel that stays. */
struct plain_executor {
	pthread_t thread;
	struct plain *plain;
	u32 group, groups;
};

/* The kernel that stays: see struct gpu_backend. */
bool plain_launch(void *device, const struct gpu_launch *launch);
bool plain_wait(void *device);
