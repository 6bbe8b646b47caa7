/*
 * What a task is: packets in slots of one arena, results in slots of another one, tables in a third
 * one. Places are offsets into arenas, since a pointer of the host is none of the device.
 *
 * A slot begins with a struct gpu_slot; the frame begins at GPU_FRAME_AT, so that an IPv4 header is
 * aligned to 4 bytes whatever VLAN tags and options it has. Arenas are aligned to 64 bytes;
 * `in_at`, `out_at`, `state_at` and strides are multiples of 16. A part of a batch is a task with
 * its own `in_at`, `out_at`, `n` and `first`.
 */
#pragma once

#include "gpu/device.h"

/* Kernels, by the names of the functions in C: IPRouter, ACL, NIDS, IPSec. */
enum gpu_nf { GPU_IP_ROUTER, GPU_ACL, GPU_NIDS, GPU_IPSEC, GPU_NFS };

struct gpu_task {
	u32 nf;                    /* enum gpu_nf */
	u32 n;                     /* packets */
	u32 in_at, in_stride;      /* bytes: of the first slot, and from a slot to the next one */
	u32 out_at, out_stride;    /* the same of results */
	u32 state_at;              /* bytes: of the function's tables */
	u32 first_low, first_high; /* number of the first packet since the start, for IPSec */
};

/*
 * Before a frame, in both arenas.
 *
 * The host sets `length`, `held` and `detail`; the device writes all four into the result. Of the
 * frame as it leaves the device writes the first `held` bytes; the rest, up to `length`, is as it
 * came.
 */
struct gpu_slot {
	u32 length;  /* of the frame */
	u32 held;    /* its first bytes in the slot, at most `length`; of headers GPU_HEADERS do */
	u32 verdict; /* by kernel; with GPU_FREED if the packet goes no further */
	u32 detail;  /* in: the side it comes from (enum nf_side); out: by kernel, see there */
};

#define GPU_FREED 0x100u

#define GPU_FRAME_AT 18
/* Bytes of the longest headers: Ethernet, two VLAN tags, IPv4 and TCP with most options. */
#define GPU_HEADERS 142

/* What a packet's frame may occupy in a result. */
#define GPU_ROOM(task) ((task)->out_stride - GPU_FRAME_AT)

DEVICE GLOBAL const struct gpu_slot *gpu_slot_in(GLOBAL const u8 *in, const struct gpu_task *task,
						 u32 i)
{
	return (GLOBAL const struct gpu_slot *)(in + task->in_at + (u64)i * task->in_stride);
}

DEVICE GLOBAL struct gpu_slot *gpu_slot_out(GLOBAL u8 *out, const struct gpu_task *task, u32 i)
{
	return (GLOBAL struct gpu_slot *)(out + task->out_at + (u64)i * task->out_stride);
}

DEVICE GLOBAL const u8 *gpu_frame(GLOBAL const struct gpu_slot *slot)
{
	return (GLOBAL const u8 *)slot + GPU_FRAME_AT;
}

/* The result of a packet of which the device writes the first `held` bytes. */
DEVICE void gpu_result(GLOBAL struct gpu_slot *slot, u32 verdict, u32 detail, u32 length, u32 held)
{
	slot->length = length;
	slot->held = held;
	slot->verdict = verdict;
	slot->detail = detail;
}
