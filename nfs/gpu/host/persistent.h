/*
 * The kernel that stays: every group is an executor, which serves parts of tasks until the launch
 * ends. Only the first lane waits; gpu/model/tables.pml is a model of what it does.
 */
/* guarded by its name: nvcc compiles this file by itself, where #pragma once is a warning */
#ifndef NFS_GPU_HOST_PERSISTENT_H
#define NFS_GPU_HOST_PERSISTENT_H

#include "gpu/host/tables.h"
#include "gpu/kernels/process.h"

/* An executor's view of its SM's tables. */
struct gpu_executor {
	u32 self, executors, slots, packets, launch;
	GLOBAL u32 *stop, *bell;
	GLOBAL struct gpu_assignment *assignments;
	GLOBAL struct gpu_dispatcher *dispatcher;
	GLOBAL struct gpu_execution *executions;
	GLOBAL struct gpu_progress *progress;
};

DEVICE struct gpu_executor executor_of(GLOBAL u8 *out, GLOBAL struct gpu_control *control, u32 sm,
				       u32 self)
{
	struct gpu_executor me;

	me.self = self;
	me.executors = control->executors_per_sm;
	me.slots = control->slots;
	me.packets = control->packets_per_executor;
	me.launch = control->launch;
	me.stop = &control->stop;
	me.bell = &gpu_bell_of(control, sm)->rings;
	me.assignments = gpu_assignments_of(control, control->sms, me.slots, sm);
	me.dispatcher =
		(GLOBAL struct gpu_dispatcher *)(out + control->tables_at +
						 (u64)sm * gpu_table_bytes(me.executors, me.slots));
	me.executions = (GLOBAL struct gpu_execution *)(me.dispatcher + 1);
	me.progress = (GLOBAL struct gpu_progress *)(me.executions + me.executors);
	return me;
}

/* An idle executor, the leader itself only if no other is; the number of executors if none is. */
DEVICE u32 executor_find_idle(const struct gpu_executor *me)
{
	u32 other = 0;

	while (other < me->executors &&
	       (other == me->self || shared_load(&me->executions[other].status) != GPU_IDLE))
		other++;
	if (other < me->executors)
		return other;
	return shared_load(&me->executions[me->self].status) == GPU_IDLE ? me->self : other;
}

/* Hand `n` packets of a task, from `first` on, to an executor that is idle. */
DEVICE void executor_assign(GLOBAL struct gpu_execution *entry, u32 slot,
			    GLOBAL const struct gpu_task *task, u32 first, u32 n)
{
	entry->slot = slot;
	entry->part = *task;
	entry->part.n = n;
	entry->part.in_at += first * task->in_stride;
	entry->part.out_at += first * task->out_stride;
	entry->part.first_low += first;
	entry->part.first_high += entry->part.first_low < first;
	shared_store(&entry->status, GPU_ASSIGNED);
}

/* Hand out the parts of a slot's task, if there is one; 0 if executors ran out. */
DEVICE u32 executor_hand_out(const struct gpu_executor *me, u32 slot)
{
	GLOBAL struct gpu_assignment *assignment = &me->assignments[slot];
	GLOBAL struct gpu_progress *progress = &me->progress[slot];
	const u32 posted = shared_load(&assignment->posted);
	u32 packets, cursor = progress->cursor;

	if (posted == progress->taken)
		return 1;
	/* read once: after the last part was handed out, the slot may have the next task already */
	packets = assignment->task.n;
	if (cursor == 0)
		shared_store(&progress->left, (packets + me->packets - 1) / me->packets);
	while (cursor < packets) {
		const u32 rest = packets - cursor, n = rest < me->packets ? rest : me->packets;
		const u32 to = executor_find_idle(me);

		if (to == me->executors) {
			progress->cursor = cursor;
			return 0;
		}
		executor_assign(&me->executions[to], slot, &assignment->task, cursor, n);
		cursor += n;
	}
	progress->cursor = 0;
	progress->taken = posted;
	return 1;
}

/* One round over the assignment table, task by task in turn. */
DEVICE void executor_round(const struct gpu_executor *me)
{
	GLOBAL struct gpu_dispatcher *dispatcher = me->dispatcher;
	u32 slot = dispatcher->next, done = 0;

	while (done < me->slots && executor_hand_out(me, slot)) {
		slot = slot + 1 == me->slots ? 0 : slot + 1;
		done++;
	}
	dispatcher->next = slot;
	dispatcher->unfinished = done < me->slots;
}

/* Lead until there is work for the leader itself, or the launch has ended. */
DEVICE void executor_lead(const struct gpu_executor *me)
{
	GLOBAL struct gpu_dispatcher *dispatcher = me->dispatcher;
	u32 rounds = 0;

	while (shared_load(&dispatcher->closed) != me->launch &&
	       shared_load(&me->executions[me->self].status) == GPU_IDLE) {
		/* in this order: what was posted before the stop has rung, and is seen */
		const u32 stopping = shared_load(me->stop) == me->launch;
		const u32 rings = shared_load(me->bell);

		if (rings != dispatcher->heard || dispatcher->unfinished) {
			executor_round(me);
			dispatcher->heard = rings;
			rounds = 0;
		}
		if (stopping && !dispatcher->unfinished)
			shared_store(&dispatcher->closed, me->launch);
		else
			rest(rounds++);
	}
}

#define GPU_NO_SLOT 0xffffffffu
#define GPU_PART_WORDS 10

/* The slot and the task of the next part into `part`; GPU_NO_SLOT at the end of the launch. */
DEVICE void executor_wait(const struct gpu_executor *me, LOCAL u32 *part)
{
	GLOBAL struct gpu_execution *entry = &me->executions[me->self];
	GLOBAL u32 *led = &me->dispatcher->led;
	u32 ended = 0, rounds = 0;

	while (shared_load(&entry->status) == GPU_IDLE && !ended) {
		/* the status is read again: the last part may have come before the end */
		ended = shared_load(&me->dispatcher->closed) == me->launch &&
			shared_load(&entry->status) == GPU_IDLE;
		if (!ended && shared_load(led) == 0 && shared_add(led, 1) == 0) {
			executor_lead(me);
			shared_store(led, 0);
		} else {
			rest(rounds++);
		}
	}
	part[0] = ended ? GPU_NO_SLOT : entry->slot;
	for (u32 i = 1; i < GPU_PART_WORDS; i++)
		part[i] = ((GLOBAL const u32 *)&entry->part)[i - 1];
}

/* After a part: the last one of a task says that it is done. */
DEVICE void executor_finish(const struct gpu_executor *me, u32 slot)
{
	GLOBAL struct gpu_assignment *assignment = &me->assignments[slot];
	const u32 posted = shared_load(&assignment->posted);

	me->executions[me->self].served++;
	if (shared_add(&me->progress[slot].left, 0xffffffffu) == 1)
		shared_store(&assignment->done, posted);
	shared_store(&me->executions[me->self].status, GPU_IDLE);
}

DEVICE struct gpu_task executor_task(LOCAL const u32 *part)
{
	struct gpu_task task;

	task.nf = part[1];
	task.n = part[2];
	task.in_at = part[3];
	task.in_stride = part[4];
	task.out_at = part[5];
	task.out_stride = part[6];
	task.state_at = part[7];
	task.first_low = part[8];
	task.first_high = part[9];
	return task;
}

/* Groups of one SM are `executors_per_sm` in a row. */
KERNEL void gpu_persistent(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
			   GLOBAL u8 *shared)
{
	GLOBAL struct gpu_control *control = (GLOBAL struct gpu_control *)shared;
	const u32 executors = control->executors_per_sm;
	const struct gpu_executor me =
		executor_of(out, control, group() / executors, group() % executors);
	GROUP_ARRAY(part, GPU_PART_WORDS);
	u32 slot = 0;

	if (lane() == 0) {
		me.executions[me.self].served = 0;
		shared_add(&control->running, 1);
	}
	while (slot != GPU_NO_SLOT) {
		if (lane() == 0)
			executor_wait(&me, part);
		meet();
		slot = part[0];
		if (slot != GPU_NO_SLOT) {
			const struct gpu_task task = executor_task(part);

			gpu_process(in, out, state, &task, lane(), lanes());
		}
		meet();
		if (lane() == 0 && slot != GPU_NO_SLOT)
			executor_finish(&me, slot);
	}
}

#endif
