/* Creates and ends a runtime: arenas, tables, gates, kernel, workers. */
#include "gpu/host/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "gpu/host/worker.h"

#define COMPILE_NS 300000000000ull /* until the first executor begins */
#define BEGIN_NS 10000000000ull    /* until the next one does */

/* Where things lie in the arenas. */
struct layout {
	size_t in, out, state;
};

static size_t aligned(size_t bytes)
{
	return (bytes + GPU_ARENA_ALIGNMENT - 1) & ~(size_t)(GPU_ARENA_ALIGNMENT - 1);
}

/* Give flights and tables of a worker their places; false without memory. */
static bool lay_out(struct gpu_worker *worker, struct layout *layout)
{
	const struct gpu_function *function = &worker->function;
	const size_t bytes = aligned((size_t)function->most_batch * function->stride);

	worker->state_at = (u32)layout->state;
	layout->state += aligned(function->table_bytes);
	for (u32 i = 0; i < GPU_FLIGHTS; i++) {
		struct gpu_flight *flight = &worker->flights[i];

		flight->slot = worker->number * GPU_FLIGHTS + i;
		flight->in_at = (u32)layout->in;
		flight->out_at = (u32)layout->out;
		layout->in += bytes;
		layout->out += bytes;
		flight->items = calloc(function->most_batch, sizeof(*flight->items));
		flight->on_device = calloc(function->most_batch, sizeof(*flight->on_device));
		if (!flight->items || !flight->on_device)
			return false;
	}
	return gpu_ring_create(&worker->ring, 2 * function->most_batch);
}

static bool create_worker(struct gpu_runtime *runtime, const struct gpu_function *function,
			  struct layout *layout)
{
	struct gpu_worker *worker = &runtime->workers[runtime->n_workers];

	worker->runtime = runtime;
	worker->number = runtime->n_workers;
	worker->function = *function;
	worker->settings = function->settings;
	if (!gpu_settings_check(runtime, function, &function->settings))
		return false;
	if (pthread_mutex_init(&worker->lock, NULL) != 0)
		return false;
	runtime->n_workers++;
	for (int bus = 0; bus < GPU_BUSES; bus++)
		gate_set_order(&runtime->gates[bus], worker->number, function->settings.order);
	if (lay_out(worker, layout))
		return true;
	fprintf(stderr, "%s: no memory for batches of %u packets\n", function->name,
		function->most_batch);
	return false;
}

static bool fits(const struct layout *layout, size_t tables)
{
	const size_t most = UINT32_MAX;

	if (layout->in <= most && layout->out + tables <= most && layout->state <= most)
		return true;
	fprintf(stderr, "gpu: batches and tables need more than 4 GiB\n");
	return false;
}

static bool open_device(struct gpu_runtime *runtime, const struct layout *layout)
{
	const size_t tables = gpu_execution_bytes(&runtime->shape);
	const struct gpu_sizes sizes = {
		.bytes = {[GPU_IN] = layout->in,
			  [GPU_OUT] = layout->out + tables,
			  [GPU_STATE] = layout->state,
			  [GPU_CONTROL] = gpu_control_bytes(&runtime->shape)},
	};

	if (!fits(layout, tables))
		return false;
	runtime->device = runtime->backend->open(&sizes);
	if (!runtime->device)
		return false;
	runtime->control =
		(struct gpu_control *)runtime->backend->host(runtime->device, GPU_CONTROL);
	gpu_tables_begin(runtime->control, &runtime->shape, (u32)layout->out);
	return true;
}

static bool copy_tables(struct gpu_runtime *runtime, const struct gpu_worker *worker)
{
	const struct gpu_function *function = &worker->function;

	if (function->table_bytes == 0)
		return true;
	memcpy(runtime->backend->host(runtime->device, GPU_STATE) + worker->state_at,
	       function->tables, function->table_bytes);
	return runtime->backend->copy_in(runtime->device, GPU_STATE, worker->state_at,
					 function->table_bytes);
}

/*
 * Wait until all executors have begun: engines may compile first, and one that does not run all at
 * once would leave some tasks waiting.
 */
static bool await_executors(struct gpu_runtime *runtime)
{
	const u32 all = runtime->shape.sms * runtime->shape.executors_per_sm;
	u64 since_ns = clock_ns();
	u32 before = 0, running;

	while ((running = shared_load(&runtime->control->running)) < all) {
		if (running != before)
			since_ns = clock_ns();
		before = running;
		if (clock_ns() - since_ns > (running ? BEGIN_NS : COMPILE_NS)) {
			fprintf(stderr,
				"gpu: %s runs %u of %u executors at once\nhint: fewer executors\n",
				runtime->backend->device(runtime->device), running, all);
			return false;
		}
		gpu_sleep(GPU_SLEEP_NS);
	}
	return true;
}

static bool launch(struct gpu_runtime *runtime)
{
	const struct gpu_launch launch = {.sms = runtime->shape.sms,
					  .executors_per_sm = runtime->shape.executors_per_sm};

	for (unsigned int i = 0; i < runtime->n_workers; i++)
		if (!copy_tables(runtime, &runtime->workers[i]))
			return false;
	if (!runtime->backend->launch_persistent) {
		fprintf(stderr, "gpu: %s has no kernel that stays\n", runtime->backend->name);
		return false;
	}
	runtime->launched = runtime->backend->launch_persistent(runtime->device, &launch);
	return runtime->launched && await_executors(runtime);
}

static bool start_workers(struct gpu_runtime *runtime)
{
	for (unsigned int i = 0; i < runtime->n_workers; i++) {
		struct gpu_worker *worker = &runtime->workers[i];

		worker->started = pthread_create(&worker->thread, NULL, gpu_work, worker) == 0;
		if (!worker->started) {
			fprintf(stderr, "%s: no thread for its worker\n", worker->function.name);
			return false;
		}
	}
	return true;
}

static bool check_shape(const struct gpu_runtime_config *config)
{
	const bool right = config->sms > 0 && config->sms <= GPU_MOST_SMS &&
			   config->executors_per_sm > 0 && config->executors_per_sm <= 1024 &&
			   config->packets_per_executor > 0 && config->n_functions > 0;

	if (!right)
		fprintf(stderr, "gpu: %u SMs of %u executors of %u packets cannot be\n",
			config->sms, config->executors_per_sm, config->packets_per_executor);
	return right;
}

static bool create(struct gpu_runtime *runtime, const struct gpu_runtime_config *config)
{
	struct layout layout = {0};
	bool right;

	if (!check_shape(config))
		return false;
	runtime->backend = config->backend;
	runtime->patience_ns = config->patience_ns;
	runtime->shape = (struct gpu_shape){
		.sms = config->sms,
		.executors_per_sm = config->executors_per_sm,
		.packets_per_executor = config->packets_per_executor,
		.slots = config->n_functions * GPU_FLIGHTS,
	};
	runtime->workers = calloc(config->n_functions, sizeof(*runtime->workers));
	right = runtime->workers != NULL;
	for (int bus = 0; bus < GPU_BUSES; bus++)
		right = right && gate_create(&runtime->gates[bus], config->n_functions);
	if (!right) {
		fprintf(stderr, "gpu: no memory for workers\n");
		return false;
	}
	for (unsigned int i = 0; i < config->n_functions; i++)
		if (!create_worker(runtime, &config->functions[i], &layout))
			return false;
	return open_device(runtime, &layout) && launch(runtime) && start_workers(runtime);
}

struct gpu_runtime *gpu_runtime_create(const struct gpu_runtime_config *config)
{
	struct gpu_runtime *runtime = calloc(1, sizeof(*runtime));

	if (!runtime) {
		fprintf(stderr, "gpu: no memory for workers\n");
		return NULL;
	}
	if (create(runtime, config))
		return runtime;
	gpu_runtime_destroy(runtime);
	return NULL;
}

static void free_worker(struct gpu_worker *worker)
{
	for (u32 i = 0; i < GPU_FLIGHTS; i++) {
		free(worker->flights[i].items);
		free(worker->flights[i].on_device);
	}
	gpu_ring_destroy(&worker->ring);
	pthread_mutex_destroy(&worker->lock);
}

bool gpu_runtime_stop(struct gpu_runtime *runtime)
{
	if (runtime->stopped)
		return runtime->answered;
	runtime->stopped = true;
	atomic_store_explicit(&runtime->stopping, true, memory_order_release);
	for (unsigned int i = 0; i < runtime->n_workers; i++)
		if (runtime->workers[i].started)
			pthread_join(runtime->workers[i].thread, NULL);
	runtime->answered = !atomic_load(&runtime->failed);
	if (!runtime->launched)
		return runtime->answered;
	gpu_tables_end(runtime->control);
	/* a kernel that does not answer may never end */
	if (runtime->answered)
		runtime->answered = runtime->backend->wait(runtime->device);
	return runtime->answered;
}

u64 gpu_runtime_served(struct gpu_runtime *runtime)
{
	const struct gpu_shape *shape = &runtime->shape;
	const size_t at = runtime->control->tables_at, n = gpu_execution_bytes(shape);
	const size_t of_sm = gpu_table_bytes(shape->executors_per_sm, shape->slots);
	const u8 *tables = runtime->backend->host(runtime->device, GPU_OUT) + at;
	u64 served = 0;

	if (!runtime->backend->copy_out(runtime->device, at, n))
		return 0;
	for (u32 sm = 0; sm < shape->sms; sm++) {
		const struct gpu_execution *entries =
			(const struct gpu_execution *)(tables + sm * of_sm +
						       sizeof(struct gpu_dispatcher));

		for (u32 i = 0; i < shape->executors_per_sm; i++)
			served += entries[i].served;
	}
	return served;
}

void gpu_runtime_destroy(struct gpu_runtime *runtime)
{
	if (!runtime)
		return;
	/* one that was given up still uses its arenas */
	if (gpu_runtime_stop(runtime) && runtime->device)
		runtime->backend->close(runtime->device);
	for (unsigned int i = 0; i < runtime->n_workers; i++)
		free_worker(&runtime->workers[i]);
	for (int bus = 0; bus < GPU_BUSES; bus++)
		gate_destroy(&runtime->gates[bus]);
	free(runtime->workers);
	free(runtime);
}

const char *gpu_runtime_device(const struct gpu_runtime *runtime)
{
	return runtime->backend->device(runtime->device);
}
