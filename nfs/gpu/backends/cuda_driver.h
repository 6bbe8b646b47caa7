/*
 * CUDA's driver, as far as kernels need it. Its library comes with NVIDIA's driver and is opened
 * when a program asks for a device, so that programs run without it and builds need no SDK for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int cuda_error; /* 0: none */
typedef int cuda_device;
typedef uint64_t cuda_address;
typedef void *cuda_handle; /* of a context, module, function or stream */

#define CUDA_STREAM_NON_BLOCKING 1u
#define CUDA_HOST_PORTABLE 1u
#define CUDA_HOST_MAPPED 2u

/* The names of functions in the library, and their types. */
#define CUDA_FUNCTIONS(F)                                                                          \
	F(cuInit, (unsigned int flags))                                                            \
	F(cuDeviceGetCount, (int *n))                                                              \
	F(cuDeviceGet, (cuda_device * device, int which))                                          \
	F(cuDeviceGetName, (char *name, int room, cuda_device device))                             \
	F(cuDeviceGetAttribute, (int *value, int attribute, cuda_device device))                   \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                             \
	  (int *blocks, cuda_handle function, int lanes, size_t shared))                           \
	F(cuDevicePrimaryCtxRetain, (cuda_handle * context, cuda_device device))                   \
	F(cuDevicePrimaryCtxRelease_v2, (cuda_device device))                                      \
	F(cuCtxSetCurrent, (cuda_handle context))                                                  \
	F(cuModuleLoadData, (cuda_handle * module, const void *image))                             \
	F(cuModuleUnload, (cuda_handle module))                                                    \
	F(cuModuleGetFunction, (cuda_handle * function, cuda_handle module, const char *name))     \
	F(cuMemAlloc_v2, (cuda_address * address, size_t bytes))                                   \
	F(cuMemFree_v2, (cuda_address address))                                                    \
	F(cuMemsetD8_v2, (cuda_address address, unsigned char byte, size_t n))                     \
	F(cuMemHostAlloc, (void **memory, size_t bytes, unsigned int flags))                       \
	F(cuMemFreeHost, (void *memory))                                                           \
	F(cuMemHostGetDevicePointer_v2,                                                            \
	  (cuda_address * address, void *memory, unsigned int flags))                              \
	F(cuMemcpyHtoDAsync_v2, (cuda_address to, const void *from, size_t n, cuda_handle stream)) \
	F(cuMemcpyDtoHAsync_v2, (void *to, cuda_address from, size_t n, cuda_handle stream))       \
	F(cuStreamCreate, (cuda_handle * stream, unsigned int flags))                              \
	F(cuStreamDestroy_v2, (cuda_handle stream))                                                \
	F(cuStreamSynchronize, (cuda_handle stream))                                               \
	F(cuLaunchKernel,                                                                          \
	  (cuda_handle function, unsigned int x, unsigned int y, unsigned int z,                   \
	   unsigned int lanes_x, unsigned int lanes_y, unsigned int lanes_z, unsigned int shared,  \
	   cuda_handle stream, void **arguments, void **extra))                                    \
	F(cuGetErrorString, (cuda_error error, const char **text))

struct cuda_driver {
#define CUDA_MEMBER(name, types) cuda_error(*name) types;
	CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* The driver; NULL if there is none, or no device. */
const struct cuda_driver *cuda_driver(void);
