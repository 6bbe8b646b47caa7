/* The host's side of the tables: posts tasks, and sees which ones are done. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpu/backends/backend.h"
#include "gpu/host/tables.h"

/* How large the tables of a device are. */
struct gpu_shape {
	u32 sms, executors_per_sm, packets_per_executor;
	u32 slots; /* batches in flight, of all workers */
};

/* Bytes in `control`, and in `out` behind the results. */
size_t gpu_control_bytes(const struct gpu_shape *shape);
size_t gpu_execution_bytes(const struct gpu_shape *shape);

/* Prepare the tables of the next launch; `tables_at` is where `out` has room for the device's. */
void gpu_tables_begin(struct gpu_control *control, const struct gpu_shape *shape, u32 tables_at);

/* Post a task of at least one packet in a slot whose last task is done. */
void gpu_post(struct gpu_control *control, u32 sm, u32 slot, const struct gpu_task *task);
/* Whether the slot's last task is done: its results are there. */
bool gpu_is_done(struct gpu_control *control, u32 sm, u32 slot);

/* End the launch once all posted tasks are served. No task is posted from here on. */
void gpu_tables_end(struct gpu_control *control);
