#include "run/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "accelerators/accelerator.h"
#include "gpu/backends/backend.h"
#include "gpu/host/runtime.h"
#include "gpu/kernels/acl.h"
#include "gpu/kernels/ip_router.h"
#include "gpu/kernels/ipsec.h"
#include "gpu/kernels/nids.h"
#include "gpu/state/state.h"

/* The engine in software; created when it is needed, or with the rules of a file. */
struct results {
	const struct accelerator_backend *backend;
	void *state;
};

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

/* The result of the packet that is in the chain; NULL if there is none. */
static const struct gpu_slot *device_result(void)
{
	return current;
}

/* What a kernel's verdict does to a packet. */

/* The counter of a function by its name; the number of counters if it has none of it. */
static unsigned int counter_of(const struct nf_kind *kind, const char *name)
{
	unsigned int i = 0;

	while (i < kind->n_counters && (!name || strcmp(kind->counters[i].name, name) != 0))
		i++;
	return i;
}

static void count(struct nf *nf, const char *name)
{
	const unsigned int counter = counter_of(nf->kind, name);

	if (counter < nf->kind->n_counters)
		nf->counters[counter]++;
}

/* Whether the host has to answer, keep flows, read IPv6, or let frames pass, as the function does. */
static bool is_the_hosts(enum gpu_nf of, u32 verdict)
{
	verdict &= ~GPU_FREED;
	return of == GPU_NIDS || (of == GPU_ACL && verdict == ACL_OTHER) ||
	       (of == GPU_IPSEC && verdict == IPSEC_OTHER) ||
	       (of == GPU_IP_ROUTER && (verdict == ROUTER_EXPIRED || verdict == ROUTER_OTHER ||
					verdict == ROUTER_UNROUTABLE));
}

/* Whether a result can be applied to a packet: devices are not trusted with buffers. */
static bool is_sound(const struct gpu_slot *result, const struct rte_mbuf *packet)
{
	return result->held <= result->length && result->held <= UINT16_MAX &&
	       (result->length <= rte_pktmbuf_pkt_len(packet) ||
		(packet->nb_segs == 1 && result->length - packet->data_len <=
						 rte_pktmbuf_tailroom(packet)));
}

/* Whether a gate is one of the function's. */
static bool is_gate(const struct nf *nf, u32 gate)
{
	return gate == NF_FORWARD || (gate >= NF_BRANCH && gate - NF_BRANCH < nf_branches(nf));
}

/* The packet as the device makes it: bytes that it wrote, then bytes that came. */
static bool rewrite(struct rte_mbuf *packet, const struct gpu_slot *result)
{
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const u8 *bytes = gpu_frame(result);

	if (result->length > length &&
	    !rte_pktmbuf_append(packet, (uint16_t)(result->length - length)))
		return false;
	if (result->length < length &&
	    rte_pktmbuf_trim(packet, (uint16_t)(length - result->length)) < 0)
		return false;
	if (result->held > packet->data_len)
		return false;
	memcpy(rte_pktmbuf_mtod(packet, void *), bytes, result->held);
	metadata_of(packet)->data_off = metadata_of(packet)->data_len = 0;
	return true;
}

/* A packet that the device has not seen, though it fits a slot: the device was given up. */
static bool must_be_freed(enum gpu_nf of, const struct rte_mbuf *packet)
{
	/* in C its sequence number, and so the vector of its cipher, would be another one's, too */
	return of == GPU_IPSEC && rte_pktmbuf_pkt_len(packet) <= RTE_MBUF_DEFAULT_DATAROOM;
}

static void send_on(enum gpu_nf of, struct rte_mbuf *packet, const struct gpu_slot *result,
		    struct nf_out *out)
{
	if (!rewrite(packet, result)) {
		rte_pktmbuf_free(packet);
		return;
	}
	if (of == GPU_IP_ROUTER)
		metadata_of(packet)->gate = (uint8_t)result->detail;
	nf_send(out, packet);
}

/*
 * Apply a result to its packet: count it, and send it, free it, or leave it to the function in C,
 * as `process` of `kind` does. Defined for a burst of one packet.
 */
static void device_apply(const struct nf_kind *kind, enum gpu_nf of, struct nf *nf,
			 struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct gpu_slot *result = device_result();
	struct rte_mbuf *packet = packets[0];

	if (!result && must_be_freed(of, packet)) {
		count(nf, "failed");
		rte_pktmbuf_free(packet);
		return;
	}
	if (!result || is_the_hosts(of, result->verdict) || !is_sound(result, packet) ||
	    (of == GPU_IP_ROUTER && !is_gate(nf, result->detail))) {
		kind->process(nf, packets, n, out);
		return;
	}
	count(nf, gpu_verdict_name(of, result->verdict));
	if (of == GPU_ACL && result->detail == 0 &&
	    (result->verdict & ~GPU_FREED) <= ACL_DENIED)
		count(nf, "unmatched");
	if (result->verdict & GPU_FREED)
		rte_pktmbuf_free(packet);
	else
		send_on(of, packet, result, out);
}

/*
 * The results of a device as those of an accelerator for regular expressions: functions that scan
 * keep their flows, counters and verdicts in C. A packet without a result is scanned in software,
 * if there is an engine.
 */

static struct accelerator_backend results_backend;

/* The best library for regular expressions; NULL if the build has none. */
static const struct accelerator_backend *in_software(void)
{
	const struct accelerator_backend *backend = backend_first();

	while (backend && (backend == &results_backend || backend->poll ||
			   backend->kind != ACCELERATOR_REGEX))
		backend = backend->next;
	return backend;
}

static void *create(void)
{
	struct results *results = calloc(1, sizeof(*results));

	if (results)
		results->backend = in_software();
	return results;
}

static void *create_rules(const struct rule_set *set)
{
	struct results *results = create();

	if (!results)
		return NULL;
	results->state = results->backend->create_rules(set);
	if (results->state)
		return results;
	free(results);
	return NULL;
}

/* Whether the library is open, which takes time and is not needed for each function. */
static bool open_library(struct results *results)
{
	if (results->backend && !results->state)
		results->state = results->backend->create();
	return results->state != NULL;
}

static uint32_t span(void *state)
{
	struct results *results = state;

	return open_library(results) && results->backend->span
		       ? results->backend->span(results->state)
		       : UINT32_MAX;
}

static enum backend_status scan(struct results *results, struct accelerator_job *job)
{
	if (open_library(results))
		return results->backend->submit(results->state, job);
	job->status = -ENOTSUP;
	return BACKEND_DONE;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	const struct gpu_slot *result = device_result();

	backend_begin(job);
	if (!result || result->verdict == NIDS_OTHER || /* IPv6 */
	    job->before + job->behind > 0)              /* the kernel has not seen all of it */
		return scan(state, job);
	job->status = 0;
	job->produced = NIDS_MATCHES(result->detail);
	job->rule = job->produced ? (int32_t)NIDS_RULE(result->detail) : -1;
	job->classes = NIDS_CLASSES(result->detail);
	return BACKEND_DONE;
}

static void destroy(void *state)
{
	struct results *results = state;

	if (results->state)
		results->backend->destroy(results->state);
	free(results);
}

static struct accelerator_backend results_backend = {
	.name = "device",
	.help = "results of a kernel",
	.kind = ACCELERATOR_REGEX,
	.preference = 1000,
	.create = create,
	.submit = submit,
	.span = span,
	.destroy = destroy,
};

/* An engine for regular expressions, whose results are those of the device. */
static void device_results_register(void)
{
	const struct accelerator_backend *software = in_software();

	if (software && software->create_rules) {
		results_backend.create_rules = create_rules;
		results_backend.fault = software->fault;
	}
	backend_register(&results_backend);
}

/* Refuses options of devices that this build, or a function, has not. */

static void hint_engines(void)
{
	fputs("hint: one of c", stderr);
	for (const struct gpu_backend *at = gpu_backend_first(); at; at = at->next)
		fprintf(stderr, " %s", at->name);
	fputc('\n', stderr);
}

static void hint_kernels(void)
{
	fputs("hint: one of", stderr);
	for (enum gpu_nf nf = 0; nf < GPU_NFS; nf++)
		fprintf(stderr, " %s", gpu_nf_name(nf));
	fputs(", or --backend c\n", stderr);
}

unsigned int device_options_check(struct device_options *options, const char *nf, bool tuned)
{
	unsigned int faults = 0;

	if (options->backend && strcmp(options->backend, "c") == 0)
		options->backend = NULL;
	if (!options->backend && tuned) {
		fprintf(stderr, "nf-run: --batch, --flush-us and --executors go with a --backend "
				"other than c\n");
		faults++;
	}
	if (options->backend && !gpu_backend_find(options->backend)) {
		fprintf(stderr, "nf-run: --backend: %s: not built\n", options->backend);
		hint_engines();
		faults++;
	}
	if (options->backend && nf && nf_find(nf) && gpu_nf_of(nf) == GPU_NFS) {
		fprintf(stderr, "nf-run: --backend: %s: %s has no kernel\n", options->backend, nf);
		hint_kernels();
		faults++;
	}
	return faults;
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
	if (device->of == GPU_IPSEC && gpu_setting(device->nf, "path_mtu") == 1)
		fprintf(stderr, "nf-run: IPSec: a kernel learns no MTU of a path, as with path_mtu=0\n");
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
