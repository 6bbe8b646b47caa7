/*
 * The tables by which workers give tasks to executors, and who writes what (gpu/model/tables.pml).
 *
 * In `control`, which host and device share, each streaming multiprocessor (SM) has an assignment
 * table: a slot for each batch that a worker may have in flight. A slot's task and `posted` are the
 * worker's alone, `done` is the executors'; both are sequence numbers, so that neither is ever set
 * back. A worker writes a task again once `done` is `posted`.
 *
 * Behind the results in the device's copy of `out`, where only the device reads and writes, each SM
 * has an execution table: an entry for each executor, which writes it while it is assigned; while
 * it is idle, the leader does. The leader is one of the executors that are idle: it hands out tasks
 * in parts until it has one itself. So no thread is kept for dispatching alone.
 *
 * `bell` counts what is posted on an SM: a leader reads one word in place of all slots.
 */
#pragma once

#include "gpu/kernels/task.h"

/* The beginning of `control`; 64 bytes. */
struct gpu_control {
	u32 stop;   /* the host's: the launch at whose end no task will be posted any more */
	u32 launch; /* counts from 1 */
	u32 sms, executors_per_sm, slots, packets_per_executor;
	u32 tables_at; /* bytes: of the execution tables in `out` */
	u32 running;   /* executors that have begun */
	u32 unused[8];
};

struct gpu_bell {
	u32 rings;
	u32 unused[15];
};

struct gpu_assignment {
	u32 posted;
	struct gpu_task task;
	u32 unused[6];
	u32 done;
	u32 unused_too[15];
};

enum gpu_status { GPU_IDLE, GPU_ASSIGNED };

struct gpu_execution {
	u32 status;
	u32 slot; /* of the assignment table */
	struct gpu_task part;
	u32 served; /* parts since the launch; the executor's alone */
	u32 unused[4];
};

/* How far the leaders have come with a slot. */
struct gpu_progress {
	u32 taken;  /* the last task of which all parts are handed out */
	u32 cursor; /* packets of the next task that are */
	u32 left;   /* parts that are not served yet */
	u32 unused;
};

/* Of an SM: before its execution table, which is before the progress of its slots. */
struct gpu_dispatcher {
	u32 led;    /* 0: nobody leads */
	u32 closed; /* the launch at whose end no part is handed out any more */
	u32 heard;  /* rings of the bell before the last round */
	u32 unfinished; /* whether that round ran out of idle executors */
	u32 next;   /* the slot at which the next round begins */
	u32 unused[11];
};

#define GPU_TABLE_ALIGNMENT 64u

DEVICE u32 gpu_table_bytes(u32 executors_per_sm, u32 slots)
{
	const u32 bytes = (u32)sizeof(struct gpu_dispatcher) +
			  executors_per_sm * (u32)sizeof(struct gpu_execution) +
			  slots * (u32)sizeof(struct gpu_progress);

	return (bytes + GPU_TABLE_ALIGNMENT - 1) & ~(GPU_TABLE_ALIGNMENT - 1);
}

DEVICE GLOBAL struct gpu_bell *gpu_bell_of(GLOBAL struct gpu_control *control, u32 sm)
{
	return (GLOBAL struct gpu_bell *)(control + 1) + sm;
}

DEVICE GLOBAL struct gpu_assignment *gpu_assignments_of(GLOBAL struct gpu_control *control, u32 sms,
							u32 slots, u32 sm)
{
	return (GLOBAL struct gpu_assignment *)gpu_bell_of(control, sms) + sm * slots;
}
