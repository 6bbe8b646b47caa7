/*
 * Mirror: sends every packet on, and behind it a copy of it back to where it came from, for a
 * collector. The copies are those of a DMA engine; packets leave in their order.
 */
#include <errno.h>

#include "accelerators/offload.h"
#include "core/memory.h"

enum { QUEUES, WINDOW };
static const struct nf_parameter parameters[] = {
	[QUEUES] = {OFFLOAD_QUEUES},
	[WINDOW] = {OFFLOAD_WINDOW},
};

enum { MIRRORED, BYTES, UNBUFFERED, FAILED };
static const struct nf_counter counters[] = {
	[MIRRORED] = {"mirrored", "packets sent on, with a copy sent back"},
	[BYTES] = {"bytes", "bytes copied"},
	[UNBUFFERED] = {"unbuffered", "packets sent on without a copy: none fits a buffer"},
	[FAILED] = {"failed", "packets sent on without a copy: the engine failed"},
};

/* The copy, which is held behind the packet, leaves no earlier than the packet. */
static void copied(struct nf *nf, struct offloaded *packet)
{
	const struct offload *offload = nf->state;
	const uint32_t slot = (uint32_t)(packet - offload->held);
	const bool succeeded = packet->job.status == 0;

	packet->action = OFFLOAD_SEND;
	if (!succeeded)
		offload->held[(slot + 1) & offload->mask].action = OFFLOAD_DROP;
	nf->counters[succeeded ? MIRRORED : FAILED]++;
	nf->counters[BYTES] += packet->job.produced;
}

static int create(struct nf *nf)
{
	return offload_create(nf->state, nf, QUEUES,
			      (offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_DMA] = copied});
}

/* A packet of `length` bytes to copy into; NULL without a buffer, or if they do not fit it. */
static struct rte_mbuf *empty_copy(const struct nf *nf, const struct rte_mbuf *of, uint32_t length)
{
	struct rte_mbuf *copy = nf->spare ? rte_pktmbuf_alloc(nf->spare) : NULL;

	if (copy &&
	    (length > rte_pktmbuf_tailroom(copy) || !rte_pktmbuf_append(copy, (uint16_t)length))) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	if (copy)
		metadata_inherit(copy, of);
	return copy;
}

static void mirror(struct nf *nf, struct rte_mbuf *packet)
{
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const struct packet no_headers = {0};
	struct rte_mbuf *copy = NULL;
	struct offloaded *held;

	/* the engine takes bytes in one piece */
	if (packet->nb_segs == 1 || rte_pktmbuf_linearize(packet) == 0)
		copy = empty_copy(nf, packet, length);
	held = offload_hold(nf->state, packet, &no_headers);
	if (!copy) {
		nf->counters[UNBUFFERED]++;
		return;
	}
	packet_send_back(copy);
	offload_hold(nf->state, copy, &no_headers);
	/* the packet waits for the engine, which reads it: once sent, its buffer may hold another one */
	held->job.input = rte_pktmbuf_mtod(packet, const uint8_t *);
	held->job.output = rte_pktmbuf_mtod(copy, uint8_t *);
	held->job.length = held->job.room = length;
	offload_request(nf->state, ACCELERATOR_DMA, held);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	offload_begin(nf->state, 2 * n, out);
	for (uint16_t i = 0; i < n; i++)
		mirror(nf, packets[i]);
	offload_end(nf->state, out);
}

static void destroy(struct nf *nf)
{
	offload_destroy(nf->state);
}

NF_KIND("Mirror", "sends every packet on and a copy of it back, by a DMA engine",
	OFFLOADS(NF_USES(ACCELERATOR_DMA)), .default_execution = NF_PIPELINE,
	.state_bytes = sizeof(struct offload), .create = create, .process = process,
	.destroy = destroy)
