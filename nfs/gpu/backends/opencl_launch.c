/*
 * The kernel that stays by OpenCL. A device that is the host (PoCL) runs a work-group on a thread
 * from its beginning to its end, so that it needs a thread for each executor: PoCL has as many as
 * cores, or as POCL_MAX_PTHREAD_COUNT says.
 */
#include "gpu/backends/opencl.h"

#include <stdio.h>

/* Whether all groups run at once; a group that waits for another to end would wait for ever. */
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

bool opencl_launch(void *device, const struct gpu_launch *launch)
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

bool opencl_wait(void *device)
{
	struct opencl *opencl = device;

	return opencl_succeeded(clFinish(opencl->queue), "finish");
}
