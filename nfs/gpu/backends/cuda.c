/*
 * Runs kernels by CUDA, on the first device. The host's arenas are pinned; `control` is mapped into
 * the device's addresses. Copies have a stream for each direction, and so do not wait for a kernel
 * that stays.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backends/arenas.h"

/*
 * CUDA's driver, as far as kernels need it. Its library comes with NVIDIA's driver and is opened
 * when a program asks for a device, so that programs run without it and builds need no SDK for it.
 */

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

static struct cuda_driver driver;
static bool is_there;

/* A function of the library, whose name it is. False without it. */
static bool find(void *library, const char *name, void *place)
{
	*(void **)place = dlsym(library, name);
	return *(void **)place != NULL;
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;
	int n = 0;

#define CUDA_FIND(name, types) all = all && find(library, #name, &driver.name);
	CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
	is_there = all && driver.cuInit(0) == 0 && driver.cuDeviceGetCount(&n) == 0 && n > 0;
	if (library && !is_there)
		dlclose(library);
}

/* The driver; NULL if there is none, or no device. */
static const struct cuda_driver *cuda_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_driver);
	return is_there ? &driver : NULL;
}

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

static const char kernels[] =
#include "gpu_kernels_ptx.h"
	;

/* Whether there was no error; prints it otherwise. */
static bool cuda_succeeded(const struct cuda *cuda, cuda_error error, const char *what)
{
	const char *text = NULL;

	if (error != 0) {
		cuda->driver->cuGetErrorString(error, &text);
		fprintf(stderr, "cuda: %s: error %d: %s\n", what, error, text ? text : "unknown");
	}
	return error == 0;
}

static bool make_context(struct cuda *cuda)
{
	const struct cuda_driver *driver = cuda->driver;
	bool good;

	good = cuda_succeeded(cuda, driver->cuDeviceGet(&cuda->device, 0), "device") &&
	       cuda_succeeded(cuda,
			      driver->cuDeviceGetName(cuda->name, sizeof(cuda->name), cuda->device),
			      "name") &&
	       cuda_succeeded(cuda, driver->cuDevicePrimaryCtxRetain(&cuda->context, cuda->device),
			      "context") &&
	       cuda_succeeded(cuda, driver->cuCtxSetCurrent(cuda->context), "context");
	for (int i = 0; good && i < CUDA_STREAMS; i++)
		good = cuda_succeeded(
			cuda, driver->cuStreamCreate(&cuda->streams[i], CUDA_STREAM_NON_BLOCKING),
			"stream");
	return good;
}

static bool load(struct cuda *cuda)
{
	const struct cuda_driver *driver = cuda->driver;

	return cuda_succeeded(cuda, driver->cuModuleLoadData(&cuda->module, kernels), "kernels") &&
	       cuda_succeeded(cuda,
			      driver->cuModuleGetFunction(&cuda->once, cuda->module, "gpu_once"),
			      "gpu_once") &&
	       cuda_succeeded(cuda,
			      driver->cuModuleGetFunction(&cuda->persistent, cuda->module,
							  "gpu_persistent"),
			      "gpu_persistent");
}

static bool allocate(struct cuda *cuda)
{
	const struct cuda_driver *driver = cuda->driver;
	bool good = true;

	for (int arena = 0; good && arena < GPU_ARENAS; arena++) {
		const size_t bytes = cuda->sizes.bytes[arena] + GPU_ARENA_ALIGNMENT;
		void *host = NULL;

		good = cuda_succeeded(
			cuda,
			driver->cuMemHostAlloc(&host, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED),
			"memory of the host");
		if (!good)
			break;
		cuda->host[arena] = memset(host, 0, bytes);
		if (arena == GPU_CONTROL)
			good = cuda_succeeded(
				cuda,
				driver->cuMemHostGetDevicePointer_v2(&cuda->at[arena], host, 0),
				"control");
		else
			good = cuda_succeeded(cuda, driver->cuMemAlloc_v2(&cuda->at[arena], bytes),
					      "memory of the device") &&
			       cuda_succeeded(cuda,
					      driver->cuMemsetD8_v2(cuda->at[arena], 0, bytes),
					      "memory of the device");
	}
	return good;
}

static void close_cuda(void *device)
{
	struct cuda *cuda = device;
	const struct cuda_driver *driver = cuda->driver;

	for (int arena = 0; arena < GPU_ARENAS; arena++) {
		if (cuda->at[arena] && arena != GPU_CONTROL)
			driver->cuMemFree_v2(cuda->at[arena]);
		if (cuda->host[arena])
			driver->cuMemFreeHost(cuda->host[arena]);
	}
	for (int i = 0; i < CUDA_STREAMS; i++)
		if (cuda->streams[i])
			driver->cuStreamDestroy_v2(cuda->streams[i]);
	if (cuda->module)
		driver->cuModuleUnload(cuda->module);
	if (cuda->context)
		driver->cuDevicePrimaryCtxRelease_v2(cuda->device);
	free(cuda);
}

static bool present(void)
{
	return cuda_driver() != NULL;
}

static void *open_cuda(const struct gpu_sizes *sizes)
{
	struct cuda *cuda = present() ? calloc(1, sizeof(*cuda)) : NULL;

	if (!cuda) {
		fprintf(stderr, "cuda: no driver, no device, or no memory\n");
		return NULL;
	}
	cuda->driver = cuda_driver();
	cuda->sizes = *sizes;
	if (make_context(cuda) && load(cuda) && allocate(cuda))
		return cuda;
	close_cuda(cuda);
	return NULL;
}

static const char *device_of(const void *device)
{
	return ((const struct cuda *)device)->name;
}

static u8 *host_of(void *device, enum gpu_arena arena)
{
	return ((struct cuda *)device)->host[arena];
}

/* Make the device the calling thread's, which may not have used it before. */
static bool cuda_enter(const struct cuda *cuda)
{
	return cuda_succeeded(cuda, cuda->driver->cuCtxSetCurrent(cuda->context), "context");
}

static bool cuda_wait_for(const struct cuda *cuda, enum cuda_stream stream)
{
	return cuda_succeeded(cuda, cuda->driver->cuStreamSynchronize(cuda->streams[stream]),
			      "stream");
}

static bool copy_in(void *device, enum gpu_arena arena, size_t at, size_t n)
{
	struct cuda *cuda = device;

	return arena_has(&cuda->sizes, arena, at, n) && cuda_enter(cuda) &&
	       cuda_succeeded(cuda,
			      cuda->driver->cuMemcpyHtoDAsync_v2(cuda->at[arena] + at,
								 cuda->host[arena] + at, n,
								 cuda->streams[CUDA_TO_DEVICE]),
			      "copy to the device") &&
	       cuda_wait_for(cuda, CUDA_TO_DEVICE);
}

static bool copy_out(void *device, size_t at, size_t n)
{
	struct cuda *cuda = device;

	return arena_has(&cuda->sizes, GPU_OUT, at, n) && cuda_enter(cuda) &&
	       cuda_succeeded(cuda,
			      cuda->driver->cuMemcpyDtoHAsync_v2(cuda->host[GPU_OUT] + at,
								 cuda->at[GPU_OUT] + at, n,
								 cuda->streams[CUDA_TO_HOST]),
			      "copy to the host") &&
	       cuda_wait_for(cuda, CUDA_TO_HOST);
}

static bool launch_once(void *device, const struct gpu_task *task, u32 n_groups)
{
	struct cuda *cuda = device;
	struct gpu_task copy = *task;
	void *arguments[] = {&cuda->at[GPU_IN], &cuda->at[GPU_OUT], &cuda->at[GPU_STATE], &copy};

	return cuda_enter(cuda) &&
	       cuda_succeeded(cuda,
			      cuda->driver->cuLaunchKernel(cuda->once, n_groups, 1, 1, GPU_LANES, 1,
							   1, 0, cuda->streams[CUDA_KERNELS],
							   arguments, NULL),
			      "launch") &&
	       cuda_wait_for(cuda, CUDA_KERNELS);
}

/*
 * The kernel that stays by CUDA. Compiled, never run so far. Groups that are one SM to the host are
 * neighbours, but the device places them on its multiprocessors as it likes.
 */

#define CUDA_MULTIPROCESSORS 16 /* an attribute */

/* Whether all groups run at once; a group that waits for another to end would never return. */
static bool runs_at_once(const struct cuda *cuda, u32 groups)
{
	const struct cuda_driver *driver = cuda->driver;
	int multiprocessors = 0, on_one = 0;

	if (!cuda_succeeded(cuda,
			    driver->cuDeviceGetAttribute(&multiprocessors, CUDA_MULTIPROCESSORS,
							 cuda->device),
			    "multiprocessors") ||
	    !cuda_succeeded(cuda,
			    driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
				    &on_one, cuda->persistent, GPU_LANES, 0),
			    "occupancy"))
		return false;
	if (groups <= (u32)multiprocessors * (u32)on_one)
		return true;
	fprintf(stderr,
		"cuda: %u executors, and %s runs %d at once on each of %d multiprocessors\n"
		"hint: fewer executors\n",
		groups, cuda->name, on_one, multiprocessors);
	return false;
}

static bool cuda_launch(void *device, const struct gpu_launch *launch)
{
	const u32 groups = launch->sms * launch->executors_per_sm;
	struct cuda *cuda = device;
	void *arguments[] = {&cuda->at[GPU_IN], &cuda->at[GPU_OUT], &cuda->at[GPU_STATE],
			     &cuda->at[GPU_CONTROL]};

	return cuda_enter(cuda) && runs_at_once(cuda, groups) &&
	       cuda_succeeded(cuda,
			      cuda->driver->cuLaunchKernel(
				      cuda->persistent, groups, 1, 1, GPU_LANES, 1, 1, 0,
				      cuda->streams[CUDA_KERNELS], arguments, NULL),
			      "launch");
}

static bool cuda_wait(void *device)
{
	struct cuda *cuda = device;

	return cuda_enter(cuda) && cuda_wait_for(cuda, CUDA_KERNELS);
}

GPU_BACKEND(cuda, "kernels by CUDA")
