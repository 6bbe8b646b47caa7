/* Workers, transfer gate and tables, on an engine of the test's own and without DPDK. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/backends/arenas.h"
#include "gpu/host/worker.h"

#define MOST_BATCH 32
#define STRIDE 64
#define MS 1000000ull
#define SECOND (1000 * MS)
#define FUNCTIONS 3
#define MOST_LOGGED 64

/* The engine of the test: plain, with transfers that are logged, can be held, and can fail. */
static struct {
	const struct gpu_backend *plain;
	struct gpu_backend backend;
	void *device;
	atomic_bool hold, fail, deaf; /* deaf: no executor answers */
	atomic_uint transferring, most_at_once, n;
	size_t places[MOST_LOGGED]; /* in `in`, of transfers in their order */
} engine;

static void nap(uint64_t ns)
{
	const struct timespec time = {.tv_nsec = (long)ns};

	nanosleep(&time, NULL);
}

static void *open_engine(const struct gpu_sizes *sizes)
{
	engine.device = engine.plain->open(sizes);
	return engine.device;
}

static bool copy_in(void *device, enum gpu_arena arena, size_t at, size_t n)
{
	unsigned int now, number;

	if (arena != GPU_IN)
		return engine.plain->copy_in(device, arena, at, n);
	now = atomic_fetch_add(&engine.transferring, 1) + 1;
	if (now > atomic_load(&engine.most_at_once))
		atomic_store(&engine.most_at_once, now);
	number = atomic_fetch_add(&engine.n, 1);
	if (number < MOST_LOGGED)
		engine.places[number] = at;
	while (atomic_load(&engine.hold))
		nap(MS / 10);
	atomic_fetch_sub(&engine.transferring, 1);
	return !atomic_load(&engine.fail) && engine.plain->copy_in(device, arena, at, n);
}

static bool launch(void *device, const struct gpu_launch *of)
{
	struct gpu_control *control = (struct gpu_control *)engine.plain->host(device, GPU_CONTROL);

	if (!atomic_load(&engine.deaf))
		return engine.plain->launch_persistent(device, of);
	control->running = of->sms * of->executors_per_sm; /* they begin, and do nothing */
	return true;
}

/* What came back, by function. */
struct flow {
	uint64_t back, wrong, without;
	uint64_t refused; /* the number of a packet that does not go to the device */
};

static bool prepare(void *state, const struct gpu_item *item, struct gpu_slot *slot, u32 stride)
{
	const struct flow *flow = state;

	assert(stride == STRIDE);
	slot->length = (u32)(uintptr_t)item->packet;
	return (uintptr_t)item->packet != flow->refused;
}

static void finish(void *state, const struct gpu_item *item, const struct gpu_slot *result)
{
	const uintptr_t number = (uintptr_t)item->packet;
	struct flow *flow = state;

	flow->back++;
	flow->wrong += number != flow->back || item->time_us != number + 7;
	flow->without += !result;
	flow->wrong += result && result->length != (u32)number;
}

struct bed {
	struct gpu_runtime_config config;
	struct gpu_function functions[FUNCTIONS];
	struct flow flows[FUNCTIONS];
	uint64_t submitted[FUNCTIONS];
	struct gpu_runtime *runtime;
};

static int setup(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	memset(&engine, 0, sizeof(engine));
	engine.plain = gpu_backend_find("plain");
	engine.backend = *engine.plain;
	engine.backend.open = open_engine;
	engine.backend.copy_in = copy_in;
	engine.backend.launch_persistent = launch;
	for (u32 i = 0; i < FUNCTIONS; i++)
		bed->functions[i] = (struct gpu_function){
			.name = "test",
			.nf = GPU_IP_ROUTER, /* gives numbers back, of packets that are no frames */
			.most_batch = MOST_BATCH,
			.stride = STRIDE,
			.prepare = prepare,
			.finish = finish,
			.state = &bed->flows[i],
			.settings = gpu_settings_even(8, i, SECOND, 2),
		};
	bed->config = (struct gpu_runtime_config){
		.backend = &engine.backend,
		.sms = 2,
		.executors_per_sm = 2,
		.packets_per_executor = 3,
		.n_functions = FUNCTIONS,
		.functions = bed->functions,
	};
	*state = bed;
	return 0;
}

static int teardown(void **state)
{
	struct bed *bed = *state;

	gpu_runtime_destroy(bed->runtime);
	free(bed);
	return 0;
}

static struct bed *started(void **state)
{
	struct bed *bed = *state;

	bed->runtime = gpu_runtime_create(&bed->config);
	assert_non_null(bed->runtime);
	return bed;
}

static void submit(struct bed *bed, unsigned int to, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const uintptr_t number = ++bed->submitted[to];

		while (!gpu_submit(bed->runtime, to, (void *)number, number + 7))
			nap(MS / 10);
	}
}

/* Wait for a number of packets of a function that have come back. */
static void await(const struct bed *bed, unsigned int of, uint64_t n)
{
	while (gpu_counts_of(bed->runtime, of).packets < n)
		nap(MS / 10);
}

/* Workers that wait for the bus. */
static unsigned int waiting(struct bed *bed, enum gpu_bus bus)
{
	struct gate *gate = &bed->runtime->gates[bus];
	unsigned int n = 0;

	pthread_mutex_lock(&gate->lock);
	for (unsigned int i = 0; i < gate->n; i++)
		n += gate->turns[i].waiting;
	pthread_mutex_unlock(&gate->lock);
	return n;
}

static void assert_all_back(const struct bed *bed)
{
	for (u32 i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(bed->flows[i].back, bed->submitted[i]);
		assert_int_equal(bed->flows[i].wrong, 0);
	}
}

/* Of those that wait the smallest order is next, and who transfers is not interrupted. */
static void the_gate_obeys_orders(void **state)
{
	struct gate gate;

	(void)state;
	assert_true(gate_create(&gate, 4));
	for (unsigned int i = 0; i < 4; i++)
		gate_set_order(&gate, i, 10 - i);
	gate_request(&gate, 0);
	assert_true(gate_is_granted(&gate, 0));
	for (unsigned int i = 1; i < 4; i++)
		gate_request(&gate, i);
	assert_true(gate_is_granted(&gate, 0) && !gate_is_granted(&gate, 3));
	gate_release(&gate, 0);
	assert_true(!gate_is_granted(&gate, 0) && gate_is_granted(&gate, 3));
	gate_set_order(&gate, 1, 1); /* while it waits */
	gate_release(&gate, 3);
	assert_true(gate_is_granted(&gate, 1));
	gate_release(&gate, 1);
	assert_true(gate_is_granted(&gate, 2));
	gate_release(&gate, 2);
	gate_request(&gate, 0);
	assert_true(gate_is_granted(&gate, 0));
	gate_destroy(&gate);
}

/*
 * Workers that are ready while the bus is taken follow by their orders, also by changed ones: the
 * last worker is the first to be ready, and the second one then gets the last order.
 */
static void transfers_follow_orders(void **state)
{
	struct bed *bed = started(state);
	struct gpu_settings last = bed->functions[1].settings;

	atomic_store(&engine.hold, true);
	submit(bed, 2, 8);
	while (atomic_load(&engine.n) < 1)
		nap(MS / 10);
	submit(bed, 1, 8);
	submit(bed, 0, 8);
	while (waiting(bed, GPU_TO_DEVICE) < FUNCTIONS - 1)
		nap(MS / 10);
	last.order = 9;
	assert_true(gpu_set(bed->runtime, 1, &last));
	atomic_store(&engine.hold, false);
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
	assert_int_equal(atomic_load(&engine.most_at_once), 1);
	assert_int_equal(atomic_load(&engine.n), 3);
	/* arenas are in the order of the functions: the third, the first, the second */
	assert_true(engine.places[1] < engine.places[2]);
	assert_true(engine.places[2] < engine.places[0]);
}

/* A batch that does not fill up is closed after the time-out, and at once by gpu_drain(). */
static void batches_are_flushed(void **state)
{
	struct bed *bed = *state;
	struct gpu_counts counts;

	bed->functions[0].settings.flush_ns = 5 * MS;
	started(state);
	submit(bed, 0, 3);
	await(bed, 0, 3);
	submit(bed, 1, 3);
	nap(10 * MS);
	assert_int_equal(gpu_counts_of(bed->runtime, 1).packets, 0);
	gpu_drain(bed->runtime, 1);
	assert_int_equal(gpu_counts_of(bed->runtime, 1).packets, 3);
	counts = gpu_counts_of(bed->runtime, 0);
	assert_true(counts.flushed >= 1);
	assert_true(counts.stage_ns[GPU_BATCHING] >= 5 * MS);
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
}

/* A batch is shared among SMs; one that is not full fills the first minibatches. */
static void batches_are_shared_out(void **state)
{
	struct bed *bed = *state;
	struct gpu_settings *settings = &bed->functions[0].settings;
	struct gpu_counts counts;

	settings->minibatches[0] = (struct gpu_minibatch){.sm = 1, .packets = 7};
	settings->minibatches[1] = (struct gpu_minibatch){.sm = 0, .packets = 1};
	started(state);
	submit(bed, 0, 8);
	await(bed, 0, 8);
	counts = gpu_counts_of(bed->runtime, 0);
	assert_int_equal(counts.tasks, 2);
	assert_int_equal(counts.parts, 3 + 1);
	submit(bed, 0, 5);
	gpu_drain(bed->runtime, 0);
	counts = gpu_counts_of(bed->runtime, 0);
	assert_int_equal(counts.tasks, 2 + 1);
	assert_int_equal(counts.parts, 4 + 2);
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_int_equal(gpu_runtime_served(bed->runtime), 6);
	assert_all_back(bed);
}

/* Smaller and larger batches while packets come: each packet comes back, in order. */
static void settings_change_at_run_time(void **state)
{
	struct bed *bed = started(state);
	struct gpu_settings settings;

	submit(bed, 0, 5);
	while (atomic_load(&bed->runtime->workers[0].ring.tail) < 5)
		nap(MS / 10);
	settings = gpu_settings_even(4, 0, SECOND, 1); /* the batch of 5 is full by now */
	assert_true(gpu_set(bed->runtime, 0, &settings));
	await(bed, 0, 5);
	assert_int_equal(gpu_counts_of(bed->runtime, 0).batches, 1);
	submit(bed, 0, 8);
	await(bed, 0, 13);
	assert_int_equal(gpu_counts_of(bed->runtime, 0).batches, 3);
	for (u32 batch = 1; batch <= MOST_BATCH; batch++) {
		settings = gpu_settings_even(batch, batch % 5, MS, 2);
		assert_true(gpu_set(bed->runtime, batch % FUNCTIONS, &settings));
		for (unsigned int i = 0; i < FUNCTIONS; i++)
			submit(bed, i, 50);
	}
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
}

/* Settings that cannot be are refused, and nothing changes. */
static void wrong_settings_are_refused(void **state)
{
	struct bed *bed = started(state);
	const struct gpu_settings right = gpu_settings_even(8, 0, SECOND, 2);
	struct gpu_settings wrong[] = {right, right, right, right, right,
				       gpu_settings_even(MOST_BATCH + 1, 0, SECOND, 2)};

	wrong[0].batch = 9;
	wrong[1].minibatches[0].sm = 2;
	wrong[2].minibatches[0].sm = 1;
	wrong[3].minibatches[0].packets = 0;
	wrong[4].n_minibatches = GPU_MOST_SMS + 1;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(gpu_set(bed->runtime, 0, &wrong[i]));
	submit(bed, 0, 8);
	await(bed, 0, 8);
	assert_int_equal(gpu_counts_of(bed->runtime, 0).tasks, 2);
}

/* Stopping in the middle of everything loses no packet and changes no order. */
static void stop_while_busy_loses_nothing(void **state)
{
	struct bed *bed = started(state);
	uint64_t parts = 0;

	for (unsigned int round = 0; round < 200; round++)
		for (unsigned int i = 0; i < FUNCTIONS; i++)
			submit(bed, i, 1 + (round * 7 + i) % 20);
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(bed->flows[i].without, 0);
		parts += gpu_counts_of(bed->runtime, i).parts;
	}
	assert_int_equal(gpu_runtime_served(bed->runtime), parts);
}

/* A packet that does not fit a slot comes back in its place, without a result. */
static void packets_that_do_not_fit_keep_their_place(void **state)
{
	struct bed *bed = *state;

	bed->flows[0].refused = 6;
	started(state);
	submit(bed, 0, 20);
	assert_true(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
	assert_int_equal(bed->flows[0].without, 1);
	assert_int_equal(gpu_counts_of(bed->runtime, 0).without_device, 1);
}

/* A device that does not answer is given up: packets come back without results. */
static void a_deaf_device_loses_no_packet(void **state)
{
	struct bed *bed = *state;

	bed->config.patience_ns = 20 * MS;
	atomic_store(&engine.deaf, true);
	started(state);
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		submit(bed, i, 100);
	assert_false(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(bed->flows[i].without, 100);
	/* no kernel uses it here, and the runtime leaves it */
	engine.plain->close(engine.device);
}

/* The same if transfers fail. */
static void failed_transfers_lose_no_packet(void **state)
{
	struct bed *bed = started(state);

	submit(bed, 0, 30);
	await(bed, 0, 24);
	atomic_store(&engine.fail, true);
	submit(bed, 0, 30);
	assert_false(gpu_runtime_stop(bed->runtime));
	assert_all_back(bed);
	assert_true(bed->flows[0].without >= 30 && bed->flows[0].without <= 36);
	engine.plain->wait(engine.device);
	engine.plain->close(engine.device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gate_obeys_orders),
		cmocka_unit_test_setup_teardown(transfers_follow_orders, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_are_flushed, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_are_shared_out, setup, teardown),
		cmocka_unit_test_setup_teardown(settings_change_at_run_time, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_settings_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_while_busy_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(packets_that_do_not_fit_keep_their_place, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_deaf_device_loses_no_packet, setup, teardown),
		cmocka_unit_test_setup_teardown(failed_transfers_lose_no_packet, setup, teardown),
	};

	return cmocka_run_group_tests_name("gpu_runtime", tests, NULL, NULL);
}
