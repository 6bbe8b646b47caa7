#include "gpu/host/posting.h"

size_t gpu_control_bytes(const struct gpu_shape *shape)
{
	const size_t of_sm = sizeof(struct gpu_bell) + shape->slots * sizeof(struct gpu_assignment);

	return sizeof(struct gpu_control) + shape->sms * of_sm;
}

size_t gpu_execution_bytes(const struct gpu_shape *shape)
{
	return (size_t)shape->sms * gpu_table_bytes(shape->executors_per_sm, shape->slots);
}

void gpu_tables_begin(struct gpu_control *control, const struct gpu_shape *shape, u32 tables_at)
{
	control->launch++;
	control->sms = shape->sms;
	control->executors_per_sm = shape->executors_per_sm;
	control->slots = shape->slots;
	control->packets_per_executor = shape->packets_per_executor;
	control->tables_at = tables_at;
	control->running = 0;
}

static struct gpu_assignment *assignment_of(struct gpu_control *control, u32 sm, u32 slot)
{
	return gpu_assignments_of(control, control->sms, control->slots, sm) + slot;
}

void gpu_post(struct gpu_control *control, u32 sm, u32 slot, const struct gpu_task *task)
{
	struct gpu_assignment *assignment = assignment_of(control, sm, slot);

	assignment->task = *task;
	shared_store(&assignment->posted, assignment->posted + 1);
	/* after it: a leader that has heard the bell sees the task */
	shared_add(&gpu_bell_of(control, sm)->rings, 1);
}

bool gpu_is_done(struct gpu_control *control, u32 sm, u32 slot)
{
	struct gpu_assignment *assignment = assignment_of(control, sm, slot);

	return shared_load(&assignment->done) == assignment->posted;
}

void gpu_tables_end(struct gpu_control *control)
{
	shared_store(&control->stop, control->launch);
}
