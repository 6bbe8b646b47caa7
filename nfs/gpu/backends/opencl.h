/* A device of OpenCL, for the files that launch kernels on it. */
#pragma once

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include "gpu/backends/backend.h"

struct opencl {
	struct gpu_sizes sizes;
	char name[200];
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program; /* has all kernels of gpu/kernels.cl */
	cl_kernel once, persistent;
	u8 *host[GPU_ARENAS];   /* its own memory, except for `control` */
	u8 *shared[GPU_ARENAS]; /* what kernels see */
};

/* Print an error of OpenCL; returns whether there was none. */
bool opencl_succeeded(cl_int error, const char *what);

/* The kernel that stays: see struct gpu_backend. */
bool opencl_launch(void *device, const struct gpu_launch *launch);
bool opencl_wait(void *device);
