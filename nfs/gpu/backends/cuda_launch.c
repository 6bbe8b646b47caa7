/*
 * The kernel that stays by CUDA. Compiled, never run so far. Groups that are one SM to the host are
 * neighbours, but the device places them on its multiprocessors as it likes.
 */
#include "gpu/backends/cuda.h"

#include <stdio.h>

#define CUDA_MULTIPROCESSORS 16 /* an attribute */

/* Whether all groups run at once; a group that waits for another to end would wait for ever. */
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

bool cuda_launch(void *device, const struct gpu_launch *launch)
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

bool cuda_wait(void *device)
{
	struct cuda *cuda = device;

	return cuda_enter(cuda) && cuda_wait_for(cuda, CUDA_KERNELS);
}
