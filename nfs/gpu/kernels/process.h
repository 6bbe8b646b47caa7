/* Processes a task by the kernel of its function; `lanes` threads share it, without barriers. */
#pragma once

#include "gpu/kernels/acl.h"
#include "gpu/kernels/ip_router.h"
#include "gpu/kernels/ipsec_open.h"
#include "gpu/kernels/nids.h"

DEVICE void gpu_process(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
			const struct gpu_task *task, u32 my_lane, u32 n_lanes)
{
	switch (task->nf) {
	case GPU_IP_ROUTER:
		nf_ip_router(in, out, state, task, my_lane, n_lanes);
		break;
	case GPU_ACL:
		nf_acl(in, out, state, task, my_lane, n_lanes);
		break;
	case GPU_NIDS:
		nf_nids(in, out, state, task, my_lane, n_lanes);
		break;
	case GPU_IPSEC:
		nf_ipsec(in, out, state, task, my_lane, n_lanes);
		break;
	default:
		break;
	}
}

/* A whole task by all groups of a launch. */
KERNEL void gpu_once(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
		     const struct gpu_task task)
{
	gpu_process(in, out, state, &task, group() * lanes() + lane(), groups() * lanes());
}
