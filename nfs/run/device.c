#include "run/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/host/runtime.h"
#include "gpu/state/state.h"

#define PATIENCE_NS 10000000000ull
#define FULL_US 20   /* wait for a device that has too many packets */
#define LONGEST 2048 /* bytes of a frame in a slot: a buffer's */

#define STRIDE_OF(bytes) ((GPU_FRAME_AT + (bytes) + 15) & ~15u)

struct device {
	struct gpu_runtime *runtime;
	struct gpu_state tables;
	struct nf *nf;
	const struct nf_kind *kind; /* of the function in C */
	struct nf_kind derived;     /* the same, with the device's results */
	enum gpu_nf of;
	bool whole; /* kernels read whole frames */
	device_enter enter;
	void *state;
};

/* A chain's function finds its device and its packet's result here: nf-run has one of each. */
static struct device *running;
static const struct gpu_slot *current;

const struct gpu_slot *device_result(void)
{
	return current;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	device_apply(running->kind, running->of, nf, packets, n, out);
}

/* Write the beginning of a frame, or all of it, into a slot. */
static bool fill_slot(void *state, const struct gpu_item *item, struct gpu_slot *slot, u32 stride)
{
	const struct device *device = state;
	const struct rte_mbuf *packet = item->packet;
	const u32 room = stride - GPU_FRAME_AT, length = rte_pktmbuf_pkt_len(packet);
	u8 *frame = (u8 *)slot + GPU_FRAME_AT;
	const void *bytes;

	if (device->whole && length > LONGEST)
		return false;
	slot->length = length;
	slot->held = length < room ? length : room;
	slot->detail = packet_from(packet);
	bytes = rte_pktmbuf_read(packet, 0, slot->held, frame);
	if (bytes && bytes != frame)
		memcpy(frame, bytes, slot->held);
	return bytes != NULL;
}

static void finish(void *state, const struct gpu_item *item, const struct gpu_slot *result)
{
	struct device *device = state;

	current = result;
	device->enter(device->state, item->packet, item->time_us);
	current = NULL;
}

void device_prepare(const struct chain_spec *spec)
{
	for (unsigned int i = 0; i < spec->n_functions; i++)
		if (spec->functions[i].kind->accelerators & NF_USES(ACCELERATOR_REGEX))
			device_results_register();
}

static bool start(struct device *device, const struct device_options *options)
{
	const u64 flush_ns = (u64)(options->flush_us * 1000);
	const struct gpu_function function = {
		.name = device->kind->name,
		.nf = device->of,
		.most_batch = options->batch,
		.stride = STRIDE_OF(device->whole ? LONGEST : GPU_HEADERS),
		.tables = device->tables.bytes,
		.table_bytes = device->tables.n,
		.prepare = fill_slot,
		.finish = finish,
		.state = device,
		.settings = gpu_settings_even(options->batch, 0, flush_ns, 1),
	};
	const struct gpu_runtime_config config = {
		.backend = gpu_backend_find(options->backend),
		.sms = 1,
		.executors_per_sm = options->executors,
		.packets_per_executor = GPU_LANES,
		.patience_ns = PATIENCE_NS,
		.n_functions = 1,
		.functions = &function,
	};

	device->derived = *device->kind;
	device->derived.process = process;
	device->nf->kind = &device->derived;
	running = device;
	device->runtime = gpu_runtime_create(&config);
	return device->runtime != NULL;
}

struct device *device_open(const struct device_options *options, struct chain *chain,
			   device_enter enter, void *state)
{
	struct device *device = calloc(1, sizeof(*device));

	if (!device) {
		fprintf(stderr, "nf-run: no memory for a device\n");
		return NULL;
	}
	device->nf = chain_function(chain, 0);
	device->kind = device->nf->kind;
	device->of = gpu_nf_of(device->kind->name);
	device->whole = device->of == GPU_NIDS || device->of == GPU_IPSEC;
	device->enter = enter;
	device->state = state;
	if (gpu_state_build(device->nf, &device->tables) && start(device, options))
		return device;
	device_close(device);
	return NULL;
}

void device_submit(struct device *device, struct rte_mbuf *packet, uint64_t time_us)
{
	while (!gpu_submit(device->runtime, 0, packet, time_us))
		usleep(FULL_US);
}

void device_drain(struct device *device)
{
	gpu_drain(device->runtime, 0);
}

bool device_stop(struct device *device)
{
	return gpu_runtime_stop(device->runtime);
}

void device_close(struct device *device)
{
	if (!device)
		return;
	gpu_runtime_destroy(device->runtime);
	device->nf->kind = device->kind;
	gpu_state_free(&device->tables);
	running = NULL;
	free(device);
}
