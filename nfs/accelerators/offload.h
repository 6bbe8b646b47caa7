/*
 * Offloads work on packets to accelerators and sends the packets in their original order.
 *
 * A network function holds every packet of a burst here, requests jobs for some of them, and
 * decides for each packet, when its job completes, whether to send it, drop it or request another
 * job. A pipeline holds packets while it goes on with the next bursts; run to completion waits for
 * its burst. At most `window` requests are under way in each queue; further ones wait.
 */
#pragma once

#include "accelerators/accelerator.h"
#include "core/nf.h"
#include "core/packet.h"

#define OFFLOAD_MOST_QUEUES 8
#define OFFLOAD_MOST_WINDOW 1024

/* Parameters of every function that offloads. */
#define OFFLOAD_QUEUES "queues", "request queues at each accelerator", 1, OFFLOAD_MOST_QUEUES, 1
#define OFFLOAD_WINDOW "window", "requests under way in each queue", 1, OFFLOAD_MOST_WINDOW, 128

enum offload_action { OFFLOAD_UNDER_WAY, OFFLOAD_SEND, OFFLOAD_DROP };

/* A held packet and its job. */
struct offloaded {
	struct accelerator_job job;
	struct rte_mbuf *packet;
	struct packet headers;
	enum offload_action action;
	int32_t place; /* for the function */
	struct stream *stream; /* that is scanned with it; or NULL */
	uint32_t scan;         /* the number of its scan */
};

/* Called when a job is complete: set the action, or request another job. */
typedef void (*offload_completion)(struct nf *nf, struct offloaded *offloaded);

/* The queues of one accelerator, used in turn. */
struct offload_lane {
	offload_completion completed;
	unsigned int n, next;
	struct accelerator_queue *queues[OFFLOAD_MOST_QUEUES];
	uint16_t n_pending[OFFLOAD_MOST_QUEUES];
	struct accelerator_job *pending[OFFLOAD_MOST_QUEUES][NF_BURST]; /* not submitted yet */
};

struct offload {
	struct nf *nf;
	struct offloaded *held; /* a ring from `head`, the oldest, to before `tail` */
	uint32_t mask, head, tail;
	struct offload_lane
		lanes[ACCELERATOR_KINDS]; /* in the order in which a packet visits them */
};

/*
 * Attach queues to each accelerator that the function uses; the parameters of OFFLOAD_QUEUES and
 * OFFLOAD_WINDOW are `first` and the next one. 0, or a negative errno after printing why;
 * offload_destroy() follows either way.
 */
int offload_create(struct offload *offload, struct nf *nf, unsigned int first,
		   const offload_completion completed[ACCELERATOR_KINDS]);
/* No packet may be held any more. */
void offload_destroy(struct offload *offload);

/* Make room for a burst of `n`: collect and send what is ready, and wait if needed. */
void offload_begin(struct offload *offload, uint16_t n, struct nf_out *out);
/* Hold a packet; it will be sent unless a job is requested for it. */
struct offloaded *offload_hold(struct offload *offload, struct rte_mbuf *packet,
			       const struct packet *headers);
/* Request a job, which is filled in except for its owner. */
void offload_request(struct offload *offload, enum accelerator_kind kind,
		     struct offloaded *offloaded);
/* Submit requested jobs; then send what is ready or, in run to completion, wait for all. */
void offload_end(struct offload *offload, struct nf_out *out);

/* Callbacks of a function whose state begins with a struct offload. */
void offload_poll(struct nf *nf, struct nf_out *out);
void offload_flush(struct nf *nf, struct nf_out *out);

/* Members of nf_kind of such a function. */
#define OFFLOADS(uses)                                                                             \
	.accelerators = (uses), .executions = NF_PIPELINE | NF_RUN_TO_COMPLETION,                  \
	.poll = offload_poll, .flush = offload_flush
