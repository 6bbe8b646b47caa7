#include "accelerators/offload.h"

#include <errno.h>
#include <stdio.h>

#include "core/memory.h"

static int attach(struct offload_lane *lane, struct accelerator *accelerator, unsigned int queues,
		  unsigned int window)
{
	for (; lane->n < queues; lane->n++) {
		lane->queues[lane->n] = accelerator_attach(accelerator, window);
		if (!lane->queues[lane->n])
			return -ENOSPC;
	}
	return 0;
}

int offload_create(struct offload *offload, struct nf *nf, unsigned int first,
		   const offload_completion completed[ACCELERATOR_KINDS])
{
	const unsigned int queues = (unsigned int)nf->settings[first];
	const unsigned int window = (unsigned int)nf->settings[first + 1];
	uint32_t most = NF_BURST;
	int error = 0;

	*offload = (struct offload){.nf = nf};
	for (int kind = 0; kind < ACCELERATOR_KINDS && error == 0; kind++) {
		if (!nf->accelerators[kind])
			continue;
		offload->lanes[kind].completed = completed[kind];
		error = attach(&offload->lanes[kind], nf->accelerators[kind], queues, window);
		most += queues * window;
	}
	offload->mask = rte_align32pow2(most) - 1;
	offload->held = nf_zalloc((offload->mask + 1) * sizeof(*offload->held));
	if (error == 0 && !offload->held) {
		fprintf(stderr, "%s: no memory to hold %u packets\n", nf->kind->name, most);
		error = -ENOMEM;
	}
	return error;
}

void offload_destroy(struct offload *offload)
{
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		for (unsigned int i = 0; i < offload->lanes[kind].n; i++)
			accelerator_detach(offload->lanes[kind].queues[i]);
	nf_free(offload->held);
}

static void collect_queue(struct nf *nf, const struct offload_lane *lane, unsigned int queue)
{
	struct accelerator_job *jobs[NF_BURST];
	uint16_t n = accelerator_collect(lane->queues[queue], jobs, NF_BURST);

	for (uint16_t i = 0; i < n; i++)
		lane->completed(nf, jobs[i]->owner);
}

/* Submit the pending jobs of a lane; wait while its queues are full. */
static void submit(struct nf *nf, struct offload_lane *lane)
{
	for (unsigned int i = 0; i < lane->n; i++) {
		uint16_t done = 0;

		for (;;) {
			done += accelerator_submit(lane->queues[i], lane->pending[i] + done,
						   lane->n_pending[i] - done);
			if (done == lane->n_pending[i])
				break;
			collect_queue(nf, lane, i);
		}
		lane->n_pending[i] = 0;
	}
}

static void send_ready(struct offload *offload, struct nf_out *out)
{
	for (; offload->head != offload->tail; offload->head++) {
		const struct offloaded *oldest = &offload->held[offload->head & offload->mask];

		if (oldest->action == OFFLOAD_UNDER_WAY)
			break;
		if (oldest->action == OFFLOAD_SEND)
			nf_send(out, oldest->packet);
		else
			rte_pktmbuf_free(oldest->packet);
	}
}

/* Submit pending jobs, poll once for completed ones, and send what is ready. */
static void progress(struct offload *offload, struct nf_out *out)
{
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		struct offload_lane *lane = &offload->lanes[kind];

		submit(offload->nf, lane);
		for (unsigned int i = 0; i < lane->n; i++)
			collect_queue(offload->nf, lane, i);
	}
	send_ready(offload, out);
}

void offload_poll(struct nf *nf, struct nf_out *out)
{
	progress(nf->state, out);
}

void offload_flush(struct nf *nf, struct nf_out *out)
{
	struct offload *offload = nf->state;

	while (offload->head != offload->tail)
		progress(offload, out);
}

void offload_begin(struct offload *offload, uint16_t n, struct nf_out *out)
{
	while (offload->tail - offload->head + n > offload->mask + 1)
		progress(offload, out);
	if (offload->head == offload->tail) /* few slots, reused soon, stay in the cache */
		offload->head = offload->tail = 0;
}

struct offloaded *offload_hold(struct offload *offload, struct rte_mbuf *packet,
			       const struct packet *headers)
{
	struct offloaded *offloaded = &offload->held[offload->tail++ & offload->mask];

	offloaded->packet = packet;
	offloaded->headers = *headers;
	offloaded->action = OFFLOAD_SEND;
	return offloaded;
}

void offload_request(struct offload *offload, enum accelerator_kind kind,
		     struct offloaded *offloaded)
{
	struct offload_lane *lane = &offload->lanes[kind];
	const unsigned int queue = lane->next;

	lane->next = queue + 1 < lane->n ? queue + 1 : 0;
	if (lane->n_pending[queue] == NF_BURST)
		submit(offload->nf, lane);
	offloaded->action = OFFLOAD_UNDER_WAY;
	offloaded->job.owner = offloaded;
	lane->pending[queue][lane->n_pending[queue]++] = &offloaded->job;
}

void offload_end(struct offload *offload, struct nf_out *out)
{
	if (offload->nf->execution == NF_PIPELINE)
		progress(offload, out);
	else
		offload_flush(offload->nf, out);
}
