/* A device of CUDA, for the files that launch kernels on it. */
#pragma once

#include "gpu/backends/backend.h"
#include "gpu/backends/cuda_driver.h"

enum cuda_stream { CUDA_TO_DEVICE, CUDA_TO_HOST, CUDA_KERNELS, CUDA_STREAMS };

struct cuda {
	const struct cuda_driver *driver;
	struct gpu_sizes sizes;
	char name[128];
	cuda_device device;
	cuda_handle context, module;
	cuda_handle once, persistent;      /* kernels */
	cuda_handle streams[CUDA_STREAMS]; /* each direction is a bus */
	u8 *host[GPU_ARENAS];              /* pinned */
	cuda_address at[GPU_ARENAS];       /* that of `control` is the host's */
};

/* Whether there was no error; prints it otherwise. */
bool cuda_succeeded(const struct cuda *cuda, cuda_error error, const char *what);
/* Make the device the calling thread's, which may not have used it before. */
bool cuda_enter(const struct cuda *cuda);
bool cuda_wait_for(const struct cuda *cuda, enum cuda_stream stream);

/* The kernel that stays; backends/backend.h. */
bool cuda_launch(void *device, const struct gpu_launch *launch);
bool cuda_wait(void *device);
