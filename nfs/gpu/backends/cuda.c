/*
 * Runs kernels by CUDA, on the first device. The host's arenas are pinned; `control` is mapped into
 * the device's addresses. Copies have a stream for each direction, and so do not wait for a kernel
 * that stays.
 */
#include "gpu/backends/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backends/arenas.h"

static const char kernels[] =
#include "gpu_kernels_ptx.h"
	;

bool cuda_succeeded(const struct cuda *cuda, cuda_error error, const char *what)
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

bool cuda_enter(const struct cuda *cuda)
{
	return cuda_succeeded(cuda, cuda->driver->cuCtxSetCurrent(cuda->context), "context");
}

bool cuda_wait_for(const struct cuda *cuda, enum cuda_stream stream)
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

static struct gpu_backend cuda_backend = {
	.name = "cuda",
	.help = "kernels by CUDA",
	.present = present,
	.open = open_cuda,
	.device = device_of,
	.host = host_of,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.launch_once = launch_once,
	.launch_persistent = cuda_launch,
	.wait = cuda_wait,
	.close = close_cuda,
};

GPU_BACKEND_REGISTER(cuda_backend)
