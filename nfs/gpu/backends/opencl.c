/*
 * Runs kernels by OpenCL, on the first device with fine-grained shared virtual memory: what a
 * kernel that stays needs to see the host's tables. The device's arenas are such memory, and copies
 * are the host's, so that none waits behind a kernel that stays. PoCL, whose device is the host,
 * has it.
 */
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>

#include "gpu/backends/arenas.h"
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

static const char source[] =
#include "gpu_kernels_cl.h"
	;

/* Print an error of OpenCL; returns whether there was none. */
static bool opencl_succeeded(cl_int error, const char *what)
{
	if (error != CL_SUCCESS)
		fprintf(stderr, "opencl: %s: error %d\n", what, error);
	return error == CL_SUCCESS;
}

/* Whether kernels on a device see the host's memory while they run. */
static bool is_shared(cl_device_id device)
{
	cl_device_svm_capabilities has = 0;

	return clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(has), &has, NULL) ==
		       CL_SUCCESS &&
	       has & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
}

/* False without a device. */
static bool find_device(struct opencl *opencl)
{
	cl_platform_id platforms[8];
	cl_device_id devices[8];
	cl_uint n_platforms = 0, n;

	if (clGetPlatformIDs(8, platforms, &n_platforms) != CL_SUCCESS)
		return false;
	for (cl_uint i = 0; i < n_platforms && i < 8; i++) {
		n = 0;
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 8, devices, &n) != CL_SUCCESS)
			continue;
		for (cl_uint k = 0; k < n && k < 8; k++) {
			opencl->platform = platforms[i];
			opencl->device = devices[k];
			if (is_shared(devices[k]))
				return true;
		}
	}
	return false;
}

static void describe(struct opencl *opencl)
{
	char platform[64] = "?", device[128] = "?";

	clGetPlatformInfo(opencl->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
	clGetDeviceInfo(opencl->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	snprintf(opencl->name, sizeof(opencl->name), "%s on %s", platform, device);
}

/* Whether executors are threads of the host, which must let others run while they wait. */
static bool is_host(cl_device_id device)
{
	cl_device_type type = 0;

	return clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL) == CL_SUCCESS &&
	       type & CL_DEVICE_TYPE_CPU;
}

static bool build(struct opencl *opencl)
{
	const char *text = source;
	const char *options = is_host(opencl->device) ? "-cl-std=CL1.2 -DGPU_IS_HOST" :
							"-cl-std=CL1.2";
	char log[4096] = "";
	cl_int error;

	opencl->program = clCreateProgramWithSource(opencl->context, 1, &text, NULL, &error);
	if (!opencl_succeeded(error, "source"))
		return false;
	error = clBuildProgram(opencl->program, 1, &opencl->device, options, NULL, NULL);
	if (error == CL_SUCCESS)
		return true;
	clGetProgramBuildInfo(opencl->program, opencl->device, CL_PROGRAM_BUILD_LOG,
			      sizeof(log) - 1, log, NULL);
	fprintf(stderr, "opencl: cannot build the kernels: error %d\n%s\n", error, log);
	return false;
}

static bool make_kernel(struct opencl *opencl)
{
	cl_int error;

	opencl->once = clCreateKernel(opencl->program, "gpu_once", &error);
	if (!opencl_succeeded(error, "gpu_once"))
		return false;
	opencl->persistent = clCreateKernel(opencl->program, "gpu_persistent", &error);
	if (!opencl_succeeded(error, "gpu_persistent"))
		return false;
	for (cl_uint arena = GPU_IN; arena <= GPU_STATE; arena++)
		if (!opencl_succeeded(clSetKernelArgSVMPointer(opencl->once, arena, opencl->shared[arena]),
			       "argument"))
			return false;
	return true;
}

static bool allocate(struct opencl *opencl)
{
	for (int arena = 0; arena < GPU_ARENAS; arena++) {
		const size_t bytes = opencl->sizes.bytes[arena] + GPU_ARENA_ALIGNMENT;

		opencl->shared[arena] = clSVMAlloc(opencl->context,
						   CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
						   bytes, GPU_ARENA_ALIGNMENT);
		if (!opencl->shared[arena]) {
			fprintf(stderr, "opencl: no memory for an arena of %zu bytes\n", bytes);
			return false;
		}
		memset(opencl->shared[arena], 0, bytes);
		opencl->host[arena] = arena == GPU_CONTROL
					      ? opencl->shared[arena]
					      : arena_allocate(opencl->sizes.bytes[arena]);
		if (!opencl->host[arena])
			return false;
	}
	return true;
}

static bool start(struct opencl *opencl)
{
	cl_int error;

	if (!find_device(opencl)) {
		fprintf(stderr, "opencl: no device with fine-grained shared memory\n");
		return false;
	}
	describe(opencl);
	opencl->context = clCreateContext(NULL, 1, &opencl->device, NULL, NULL, &error);
	if (!opencl_succeeded(error, "context"))
		return false;
	opencl->queue =
		clCreateCommandQueueWithProperties(opencl->context, opencl->device, NULL, &error);
	return opencl_succeeded(error, "queue") && allocate(opencl) && build(opencl) &&
	       make_kernel(opencl);
}

static void close_opencl(void *device)
{
	struct opencl *opencl = device;

	if (opencl->persistent)
		clReleaseKernel(opencl->persistent);
	if (opencl->once)
		clReleaseKernel(opencl->once);
	if (opencl->program)
		clReleaseProgram(opencl->program);
	for (int arena = 0; arena < GPU_ARENAS; arena++) {
		if (opencl->host[arena] != opencl->shared[arena])
			free(opencl->host[arena]);
		if (opencl->shared[arena])
			clSVMFree(opencl->context, opencl->shared[arena]);
	}
	if (opencl->queue)
		clReleaseCommandQueue(opencl->queue);
	if (opencl->context)
		clReleaseContext(opencl->context);
	free(opencl);
}

static void *open_opencl(const struct gpu_sizes *sizes)
{
	struct opencl *opencl = calloc(1, sizeof(*opencl));

	if (!opencl) {
		fprintf(stderr, "opencl: no memory for a device\n");
		return NULL;
	}
	opencl->sizes = *sizes;
	if (start(opencl))
		return opencl;
	close_opencl(opencl);
	return NULL;
}

static bool present(void)
{
	struct opencl found;

	return find_device(&found);
}

static const char *device_of(const void *device)
{
	return ((const struct opencl *)device)->name;
}

static u8 *host_of(void *device, enum gpu_arena arena)
{
	return ((struct opencl *)device)->host[arena];
}

static bool copy_in(void *device, enum gpu_arena arena, size_t at, size_t n)
{
	struct opencl *opencl = device;

	if (!arena_has(&opencl->sizes, arena, at, n))
		return false;
	memcpy(opencl->shared[arena] + at, opencl->host[arena] + at, n);
	return true;
}

static bool copy_out(void *device, size_t at, size_t n)
{
	struct opencl *opencl = device;

	if (!arena_has(&opencl->sizes, GPU_OUT, at, n))
		return false;
	memcpy(opencl->host[GPU_OUT] + at, opencl->shared[GPU_OUT] + at, n);
	return true;
}

static bool launch_once(void *device, const struct gpu_task *task, u32 n_groups)
{
	const size_t in_group = GPU_LANES, all = (size_t)n_groups * GPU_LANES;
	struct opencl *opencl = device;

	return opencl_succeeded(clSetKernelArg(opencl->once, GPU_CONTROL, sizeof(*task), task), "task") &&
	       opencl_succeeded(clEnqueueNDRangeKernel(opencl->queue, opencl->once, 1, NULL, &all,
						&in_group, 0, NULL, NULL),
			 "launch") &&
	       opencl_succeeded(clFinish(opencl->queue), "finish");
}

/*
 * The kernel that stays by OpenCL. A device that is the host (PoCL) runs a work-group on a thread
 * from its beginning to its end, so that it needs a thread for each executor: PoCL has as many as
 * cores, or as POCL_MAX_PTHREAD_COUNT says.
 */

/* Whether all groups run at once; a group that waits for another to end would never return. */
static bool runs_at_once(const struct opencl *opencl, u32 groups)
{
	cl_device_type type = 0;
	cl_uint units = 0;

	clGetDeviceInfo(opencl->device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	clGetDeviceInfo(opencl->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	if (!(type & CL_DEVICE_TYPE_CPU) || groups <= units)
		return true;
	fprintf(stderr,
		"opencl: %u executors, and %s runs %u at once\nhint: fewer executors, or "
		"POCL_MAX_PTHREAD_COUNT=%u\n",
		groups, opencl->name, units, groups);
	return false;
}

/* The kernel that stays: see struct gpu_backend. */
static bool opencl_launch(void *device, const struct gpu_launch *launch)
{
	const u32 groups = launch->sms * launch->executors_per_sm;
	const size_t in_group = GPU_LANES, all = (size_t)groups * GPU_LANES;
	struct opencl *opencl = device;

	if (!runs_at_once(opencl, groups))
		return false;
	for (cl_uint arena = GPU_IN; arena <= GPU_CONTROL; arena++)
		if (!opencl_succeeded(clSetKernelArgSVMPointer(opencl->persistent, arena,
							       opencl->shared[arena]),
				      "argument"))
			return false;
	return opencl_succeeded(clEnqueueNDRangeKernel(opencl->queue, opencl->persistent, 1, NULL,
						       &all, &in_group, 0, NULL, NULL),
				"launch") &&
	       opencl_succeeded(clFlush(opencl->queue), "flush");
}

static bool opencl_wait(void *device)
{
	struct opencl *opencl = device;

	return opencl_succeeded(clFinish(opencl->queue), "finish");
}

GPU_BACKEND(opencl, "kernels by OpenCL")
