/*
 * nf-gpu-tasks: serves many small tasks of four network functions by one launch of the kernel that
 * stays, and checks that each is served once and packets come back in order.
 *
 *     nf-gpu-tasks --backend opencl --tasks 1000000
 *
 * Packets are no frames but sequence numbers, which kernels write into their results.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/command_line.h"
#include "core/random.h"
#include "gpu/host/runtime.h"

#define FUNCTIONS 4
#define MOST_BATCH 64
#define STRIDE 64
#define FLUSH_NS 1000000
#define PATIENCE_NS 60000000000ull

static const char help[] =
	"Usage: nf-gpu-tasks [--backend NAME] [--tasks N] [...]\n"
	"\n"
	"Serves tasks of four network functions by one launch of a kernel, and checks that each\n"
	"is served once. Prints one line of JSON.\n"
	"\n"
	"  --backend NAME   what runs the kernel (plain)\n"
	"  --tasks N        parts of batches to serve, at least (100000)\n"
	"  --sms N          streaming multiprocessors (1)\n"
	"  --executors N    executors of each (2)\n"
	"  --batch N        packets of a batch, 1 to 64 (8)\n"
	"  --packets N      packets of an executor (4)\n"
	"  --rebatch        change batch sizes and orders of transfers all the time\n"
	"  --help           this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input.\n";

struct options {
	const char *backend;
	u32 tasks, sms, executors, batch, packets;
	bool rebatch;
};

/* What the thread of a worker knows of its packets. */
struct flow {
	uint64_t back;  /* packets */
	uint64_t wrong; /* of them: out of order, or without their own result */
};

static bool prepare(void *state, const struct gpu_item *item, struct gpu_slot *slot, u32 stride)
{
	(void)state;
	(void)stride;
	slot->length = (u32)(uintptr_t)item->packet;
	return true;
}

static void finish(void *state, const struct gpu_item *item, const struct gpu_slot *result)
{
	const uintptr_t number = (uintptr_t)item->packet;
	struct flow *flow = state;

	flow->back++;
	flow->wrong += number != flow->back || !result || result->length != (u32)number;
}

static int read_options(struct options *options, int argc, char **argv)
{
	const struct command_option known[] = {
		{"backend", .text = &options->backend},
		{"tasks", .number = &options->tasks, .least = 1, .most = UINT32_MAX},
		{"sms", .number = &options->sms, .least = 1, .most = GPU_MOST_SMS},
		{"executors", .number = &options->executors, .least = 1, .most = 1024},
		{"batch", .number = &options->batch, .least = 1, .most = MOST_BATCH},
		{"packets", .number = &options->packets, .least = 1, .most = MOST_BATCH},
		{"rebatch", .flag = &options->rebatch},
		{0},
	};
	const struct command_line line = {"nf-gpu-tasks", help, known};

	return command_line_read(&line, argc, argv);
}

static struct gpu_runtime *start(const struct options *options, struct flow *flows)
{
	static const char *const names[FUNCTIONS] = {"first", "second", "third", "fourth"};
	static u8 tables[4096] __attribute__((aligned(GPU_ARENA_ALIGNMENT)));
	struct gpu_function functions[FUNCTIONS];
	struct gpu_runtime_config config = {
		.backend = gpu_backend_find(options->backend),
		.sms = options->sms,
		.executors_per_sm = options->executors,
		.packets_per_executor = options->packets,
		.patience_ns = PATIENCE_NS,
		.n_functions = FUNCTIONS,
		.functions = functions,
	};

	for (u32 i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct gpu_function){
			.name = names[i],
			.nf = i % 2 ? GPU_ACL : GPU_IP_ROUTER,
			.most_batch = MOST_BATCH,
			.stride = STRIDE,
			.tables = tables,
			.table_bytes = sizeof(tables),
			.prepare = prepare,
			.finish = finish,
			.state = &flows[i],
			.settings = gpu_settings_even(options->batch, i, FLUSH_NS, options->sms),
		};
	return gpu_runtime_create(&config);
}

static struct gpu_counts sum(const struct gpu_runtime *runtime)
{
	struct gpu_counts total = {0};

	for (u32 i = 0; i < FUNCTIONS; i++) {
		const struct gpu_counts counts = gpu_counts_of(runtime, i);

		total.packets += counts.packets;
		total.batches += counts.batches;
		total.flushed += counts.flushed;
		total.tasks += counts.tasks;
		total.parts += counts.parts;
		total.without_device += counts.without_device;
	}
	return total;
}

/* New settings for a worker, any that it may have. */
static void change(struct gpu_runtime *runtime, const struct options *options, uint64_t *random)
{
	const u32 batch = 1 + (u32)(random_next(random) % MOST_BATCH);
	const u32 order = (u32)(random_next(random) % FUNCTIONS);
	const struct gpu_settings settings =
		gpu_settings_even(batch, order, FLUSH_NS, options->sms);

	gpu_set(runtime, (unsigned int)(random_next(random) % FUNCTIONS), &settings);
}

/* A packet each, so that engines that compile at the first launch have done so. */
static void warm_up(struct gpu_runtime *runtime, uint64_t submitted[FUNCTIONS])
{
	for (u32 i = 0; i < FUNCTIONS; i++) {
		gpu_submit(runtime, i, (void *)(uintptr_t)++submitted[i], 0);
		gpu_drain(runtime, i);
	}
}

/* Submit packets until enough tasks were posted; how many of each function into `submitted`. */
static void submit(struct gpu_runtime *runtime, const struct options *options,
		   uint64_t submitted[FUNCTIONS])
{
	uint64_t random = 1, rounds = 0;

	while (sum(runtime).tasks < options->tasks) {
		for (u32 i = 0; i < FUNCTIONS; i++)
			while (gpu_submit(runtime, i, (void *)(uintptr_t)(submitted[i] + 1), 0))
				submitted[i]++;
		if (options->rebatch && ++rounds % 16 == 0)
			change(runtime, options, &random);
		sched_yield();
	}
}

static bool report(struct gpu_runtime *runtime, const struct options *options, double seconds,
		   const uint64_t submitted[FUNCTIONS], const struct flow flows[FUNCTIONS])
{
	const struct gpu_counts counts = sum(runtime);
	const uint64_t served = gpu_runtime_served(runtime);
	uint64_t lost = 0, wrong = 0;

	for (u32 i = 0; i < FUNCTIONS; i++) {
		lost += submitted[i] - flows[i].back;
		wrong += flows[i].wrong;
	}
	printf("{\"backend\": \"%s\", \"device\": \"%s\", \"executors\": %u, \"tasks\": %" PRIu64
	       ", \"parts\": %" PRIu64 ", \"parts_served\": %" PRIu64 ", \"batches\": %" PRIu64
	       ", \"flushed\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"lost\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"seconds\": %.3f, \"tasks_per_s\": %.0f}\n",
	       options->backend, gpu_runtime_device(runtime), options->sms * options->executors,
	       counts.tasks, counts.parts, served, counts.batches, counts.flushed, counts.packets,
	       lost, wrong, seconds, (double)counts.tasks / seconds);
	return lost == 0 && wrong == 0 && served == counts.parts;
}

int main(int argc, char **argv)
{
	struct options options = {
		.backend = "plain", .tasks = 100000, .sms = 1, .executors = 2, .batch = 8,
		.packets = 4};
	struct flow flows[FUNCTIONS] = {0};
	uint64_t submitted[FUNCTIONS] = {0}, begin_ns;
	struct gpu_runtime *runtime;
	bool right;
	const int result = read_options(&options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (!gpu_backend_find(options.backend)) {
		fprintf(stderr, "nf-gpu-tasks: --backend: %s: not built\nhint: one of",
			options.backend);
		for (const struct gpu_backend *at = gpu_backend_first(); at; at = at->next)
			fprintf(stderr, " %s", at->name);
		fputc('\n', stderr);
		return 2;
	}
	runtime = start(&options, flows);
	if (!runtime)
		return 1;
	warm_up(runtime, submitted);
	begin_ns = clock_ns();
	submit(runtime, &options, submitted);
	right = gpu_runtime_stop(runtime);
	if (right)
		right = report(runtime, &options, (double)(clock_ns() - begin_ns) / 1e9, submitted,
			       flows);
	gpu_runtime_destroy(runtime);
	return right ? 0 : 1;
}
