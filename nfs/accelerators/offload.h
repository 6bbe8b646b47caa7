/*
 * Packets on which accelerators work, sent in the order in which they came.
 *
 * A network function holds every packet of a burst here, asks for requests where there is
 * something to ask, and decides each packet's fate when its answer is there: at once, or with a
 * further request. As a pipeline it holds packets while it goes on with the next ones; run to
 * completion, it waits for its burst. At most `window` requests are under way in each queue; who
 * wants more waits.
 */
#ifndef NFS_ACCELERATORS_OFFLOAD_H
#define NFS_ACCELERATORS_OFFLOAD_H

#include "accelerators/accelerator.h"
#include "core/nf.h"
#include "core/packet.h"

#define OFFLOAD_MOST_QUEUES 8
#define OFFLOAD_MOST_WINDOW 1024

/* Parameters of every function that offloads. */
#define OFFLOAD_QUEUES "queues", "request queues at each accelerator", 1, OFFLOAD_MOST_QUEUES, 1
#define OFFLOAD_WINDOW "window", "requests under way in each queue", 1, OFFLOAD_MOST_WINDOW, 128

enum offload_action { OFFLOAD_UNDER_WAY, OFFLOAD_SEND, OFFLOAD_DROP };

/* A packet that is held, and its request. */
struct offloaded {
	struct accelerator_job job;
	struct rte_mbuf *packet;
	struct packet headers;
	enum offload_action action;
	int32_t place; /* the function's own */
};

/* What to do with an answer: set the fate, or ask for another request. */
typedef void (*offload_completion)(struct nf *nf, struct offloaded *offloaded);

/* The queues of one accelerator; packets take them in turn. */
struct offload_lane {
	offload_completion completed;
	unsigned int n, next;
	struct accelerator_queue *queues[OFFLOAD_MOST_QUEUES];
	uint16_t n_pending[OFFLOAD_MOST_QUEUES];
	struct accelerator_job *pending[OFFLOAD_MOST_QUEUES][NF_BURST]; /* not submitted yet */
};

struct offload {
	struct nf *nf;
	struct offloaded *held; /* a ring, from the oldest at `head` to before `tail` */
	uint32_t mask, head, tail;
	struct offload_lane lanes[ACCELERATOR_KINDS]; /* in the order in which a packet goes */
};

/*
 * Attach `queues` queues to each accelerator that the function uses. 0, or a negative errno after
 * printing why.
 */
int offload_create(struct offload *offload, struct nf *nf, unsigned int queues, unsigned int window,
		   const offload_completion completed[ACCELERATOR_KINDS]);
/* Nothing may be held any more. */
void offload_destroy(struct offload *offload);

/* Make room for a burst of `n`: collect and send what is ready, waiting where need be. */
void offload_begin(struct offload *offload, uint16_t n, struct nf_out *out);
/* Hold a packet; its fate is to be sent unless something is asked. */
struct offloaded *offload_hold(struct offload *offload, struct rte_mbuf *packet,
			       const struct packet *headers);
/* Ask for a request, whose job is filled in but for its owner. */
void offload_request(struct offload *offload, enum accelerator_kind kind,
		     struct offloaded *offloaded);
/* Submit what was asked; then send what is ready, or, run to completion, all. */
void offload_end(struct offload *offload, struct nf_out *out);
/* Wait for all that is held, and send it. */
void offload_drain(struct offload *offload, struct nf_out *out);

#endif
