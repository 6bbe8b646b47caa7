#include "tests/gpu_rig.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct gpu_sizes without_state = {
	.bytes = {[GPU_IN] = GPU_RIG_BATCH * GPU_RIG_STRIDE,
		  [GPU_OUT] = GPU_RIG_BATCH * GPU_RIG_STRIDE,
		  [GPU_CONTROL] = 64},
};

static void launch_nothing(const struct gpu_rig *gpu, const struct gpu_backend *backend)
{
	const struct gpu_task none = {
		.nf = gpu->nf, .in_stride = GPU_RIG_STRIDE, .out_stride = GPU_RIG_STRIDE};
	struct gpu_sizes sizes = without_state;
	void *device;

	sizes.bytes[GPU_STATE] = gpu->state.n;
	if (!backend->present())
		return;
	device = backend->open(&sizes);
	if (device)
		backend->launch_once(device, &none, 1);
}

/*
 * A driver compiles the kernels when they first run on a machine, and keeps them in its cache; its
 * compiler never frees what it took. A child process runs that compiler, so that the leak checker,
 * which looks at this process alone, finds no leaks of another's. Before this process has the
 * driver: a child has no threads of a driver's.
 */
static void compile_in_a_child(const struct gpu_rig *gpu)
{
	static bool compiled;
	pid_t child;

	if (compiled)
		return;
	compiled = true;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (const struct gpu_backend *at = gpu_backend_first(); at; at = at->next)
			launch_nothing(gpu, at);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void open_engine(struct gpu_rig *gpu, const struct gpu_backend *backend)
{
	struct gpu_sizes sizes = without_state;
	struct gpu_engine *engine = &gpu->engines[gpu->n_engines];

	sizes.bytes[GPU_STATE] = gpu->state.n;
	assert_true(gpu->n_engines < GPU_RIG_ENGINES);
	if (!backend->present()) {
		print_message("%s: no device: left out\n", backend->name);
		return;
	}
	engine->backend = backend;
	engine->device = backend->open(&sizes);
	assert_non_null(engine->device);
	memcpy(backend->host(engine->device, GPU_STATE), gpu->state.bytes, gpu->state.n);
	assert_true(backend->copy_in(engine->device, GPU_STATE, 0, gpu->state.n));
	print_message("%s: %s\n", backend->name, backend->device(engine->device));
	gpu->n_engines++;
}

/* The engine that the environment's GPU_REQUIRED names must have a device. */
static void check_required(const struct gpu_rig *gpu)
{
	const char *required = getenv("GPU_REQUIRED");

	for (unsigned int i = 0; required && i < gpu->n_engines; i++)
		if (strcmp(gpu->engines[i].backend->name, required) == 0)
			return;
	if (required)
		fail_msg("%s has no device", required);
}

static void free_gpu(void *owned)
{
	struct gpu_rig *gpu = owned;

	print_message("%s: %" PRIu64 " packets the same\n", gpu_nf_name(gpu->nf), gpu->offered);
	for (unsigned int i = 0; i < gpu->n_engines; i++)
		gpu->engines[i].backend->close(gpu->engines[i].device);
	gpu_state_free(&gpu->state);
	free(gpu);
}

struct gpu_rig *gpu_rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
			     unsigned int n_settings)
{
	struct gpu_rig *gpu = calloc(1, sizeof(*gpu));

	assert_non_null(gpu);
	gpu->rig = rig;
	gpu->nf = gpu_nf_of(name);
	assert_int_not_equal(gpu->nf, GPU_NFS);
	rig_make(rig, name, settings, n_settings);
	assert_true(gpu_state_build(rig->nf, &gpu->state));
	compile_in_a_child(gpu);
	for (const struct gpu_backend *at = gpu_backend_first(); at; at = at->next)
		open_engine(gpu, at);
	check_required(gpu);
	rig_own(rig, gpu, free_gpu);
	return gpu;
}

static void fill_slot(const struct gpu_rig *gpu, u8 *slot, struct rte_mbuf *packet)
{
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const struct gpu_slot head = {
		.length = length,
		.held = gpu->most_held && gpu->most_held < length ? gpu->most_held : length,
		.detail = packet_from(packet),
	};

	assert_true(length <= GPU_RIG_LONGEST);
	memset(slot, 0xee, GPU_RIG_STRIDE);
	memcpy(slot, &head, sizeof(head));
	packet_bytes(packet, slot + GPU_FRAME_AT, (uint16_t)head.held);
}

static void run_on(struct gpu_rig *gpu, const struct gpu_engine *engine)
{
	const struct gpu_backend *backend = engine->backend;
	const struct gpu_task task = {
		.nf = gpu->nf,
		.n = gpu->n,
		.in_stride = GPU_RIG_STRIDE,
		.out_stride = GPU_RIG_STRIDE,
		.first_low = (u32)gpu->offered,
		.first_high = (u32)(gpu->offered >> 32),
	};
	const size_t bytes = (size_t)gpu->n * GPU_RIG_STRIDE;

	for (unsigned int i = 0; i < gpu->n; i++)
		fill_slot(gpu, backend->host(engine->device, GPU_IN) + (size_t)i * GPU_RIG_STRIDE,
			  gpu->packets[i]);
	assert_true(backend->copy_in(engine->device, GPU_IN, 0, bytes));
	assert_true(backend->launch_once(engine->device, &task, 1 + gpu->n / GPU_LANES));
	assert_true(backend->copy_out(engine->device, 0, bytes));
}

/* The result of a packet: its head, and bytes in the slot. */
static const u8 *result_of(const struct gpu_engine *engine, unsigned int i, struct gpu_slot *head)
{
	const u8 *slot =
		engine->backend->host(engine->device, GPU_OUT) + (size_t)i * GPU_RIG_STRIDE;

	memcpy(head, slot, sizeof(*head));
	assert_true(head->held <= head->length && head->held <= GPU_RIG_STRIDE - GPU_FRAME_AT);
	return slot + GPU_FRAME_AT;
}

static void compare_engines(const struct gpu_rig *gpu, unsigned int i)
{
	struct gpu_slot first, other;
	const u8 *bytes = result_of(&gpu->engines[0], i, &first);

	for (unsigned int k = 1; k < gpu->n_engines; k++) {
		const u8 *others = result_of(&gpu->engines[k], i, &other);

		assert_memory_equal(&first, &other, sizeof(first));
		assert_memory_equal(bytes, others, first.held);
	}
}

/* The packet as the device makes it: what it wrote, then what came. */
static uint32_t made_by_device(const struct gpu_slot *head, const u8 *bytes,
			       const struct rte_mbuf *packet, u8 frame[GPU_RIG_STRIDE])
{
	u8 came[GPU_RIG_STRIDE];
	const void *at = rte_pktmbuf_read(packet, 0, rte_pktmbuf_pkt_len(packet), came);

	memcpy(frame, at, rte_pktmbuf_pkt_len(packet));
	memcpy(frame, bytes, head->held);
	return head->length;
}

static void compare_sent(const struct gpu_rig *gpu, const u8 *frame, uint32_t length)
{
	const struct rig *rig = gpu->rig;
	u8 sent[GPU_RIG_STRIDE];
	const void *at;

	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rte_pktmbuf_pkt_len(rig->out.packets[0]), length);
	at = rte_pktmbuf_read(rig->out.packets[0], 0, length, sent);
	assert_memory_equal(at, frame, length);
}

/*
 * The function in C counts the same verdict, and sends the same packet, or none; a frame that the
 * kernel leaves to the host is the function's.
 */
static void compare_with_c(struct gpu_rig *gpu, unsigned int i)
{
	u8 frame[GPU_RIG_STRIDE];
	struct gpu_slot head;
	const u8 *bytes = result_of(&gpu->engines[0], i, &head);
	const uint32_t length = made_by_device(&head, bytes, gpu->packets[i], frame);
	const char *counter = gpu_verdict_name(gpu->nf, head.verdict);
	const uint64_t before = counter ? rig_count(gpu->rig, counter) : 0;

	if (gpu->check)
		gpu->check(gpu, gpu->packets[i], &head);
	rig_offer(gpu->rig, gpu->packets[i], SECOND + gpu->offered + i);
	if (!counter) /* the host's */
		return;
	assert_int_equal(rig_count(gpu->rig, counter), before + 1);
	if (head.verdict & GPU_FREED) {
		for (uint32_t k = 0; k < gpu->rig->out.n; k++) /* ICMP errors are the host's */
			assert_int_equal(metadata_of(gpu->rig->out.packets[k])->gate, NF_BACK);
		return;
	}
	compare_sent(gpu, frame, length);
	if (gpu->nf == GPU_IP_ROUTER)
		assert_int_equal(metadata_of(gpu->rig->out.packets[0])->gate, head.detail);
}

void gpu_rig_run(struct gpu_rig *gpu)
{
	for (unsigned int k = 0; k < gpu->n_engines; k++)
		run_on(gpu, &gpu->engines[k]);
	for (unsigned int i = 0; i < gpu->n; i++) {
		compare_engines(gpu, i);
		compare_with_c(gpu, i);
	}
	gpu->offered += gpu->n;
	gpu->n = 0;
}

void gpu_rig_add(struct gpu_rig *gpu, struct rte_mbuf *packet)
{
	u8 bytes[GPU_RIG_STRIDE];
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes));

	gpu->packets[gpu->n] = packet_of(gpu->rig, bytes, length);
	metadata_inherit(gpu->packets[gpu->n++], packet);
	rte_pktmbuf_free(packet);
	if (gpu->n == GPU_RIG_BATCH)
		gpu_rig_run(gpu);
}

unsigned int gpu_rig_count(unsigned int usual)
{
	const char *wanted = getenv("GPU_PACKETS");

	return wanted ? (unsigned int)strtoul(wanted, NULL, 10) : usual;
}

void gpu_rig_offer_hostile(struct gpu_rig *gpu, const uint32_t *addresses, unsigned int n_addresses,
			   unsigned int n)
{
	uint64_t random = 1;

	for (unsigned int i = 0; i < n; i++)
		gpu_rig_add(gpu, hostile_packet(gpu->rig, addresses, n_addresses, &random));
	gpu_rig_run(gpu);
}
