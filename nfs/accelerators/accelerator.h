/*
 * An accelerator that serves requests from queues in turn, as a NIC's regex or compression engine
 * does (Tomur, section 4.1.1).
 *
 * A user attaches one or more queues, submits jobs to them and collects them when they are done.
 * Whoever serves takes one request of each queue that has any, round robin: a thread on a core of
 * its own (accelerator_serve_until), or, without one, the user itself while it collects. Queues may
 * be attached and detached by any thread, while others are served, too.
 * What runs a job is a backend: one file each, in this folder.
 */
#ifndef NFS_ACCELERATORS_ACCELERATOR_H
#define NFS_ACCELERATORS_ACCELERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/nf.h"

#define ACCELERATOR_MOST_QUEUES 64
#define ACCELERATOR_MOST_DEPTH 4096

struct accelerator_queue;

/* A request. It belongs to the accelerator from submit to collect. */
struct accelerator_job {
	const uint8_t *input;
	uint32_t length;
	uint8_t *output;   /* compression: where to; unused by regex */
	uint32_t room;     /* bytes there */
	uint32_t produced; /* regex: rules that matched; compression: bytes of output */
	int32_t rule;      /* regex: the lowest that matched, -1 when none did */
	int32_t status;    /* 0, or a negative errno: -ENOSPC when the output has no room */
	void *owner;       /* the submitter's own */
	struct accelerator_queue *queue; /* set by submit */
};

/* The accelerator of a kind by the first backend that works; NULL after printing why. */
struct accelerator *accelerator_create(enum accelerator_kind kind);
/* By a backend's name: "hyperscan", "deflate", "doca-regex", ... */
struct accelerator *accelerator_create_by(const char *backend);
void accelerator_destroy(struct accelerator *accelerator);
const char *accelerator_backend(const struct accelerator *accelerator);

/* A queue for at most `depth` requests under way; NULL after printing why. */
struct accelerator_queue *accelerator_attach(struct accelerator *accelerator, unsigned int depth);
/* The queue must have been collected empty. */
void accelerator_detach(struct accelerator_queue *queue);

/* How many of `n` jobs were taken, from the first on; fewer when `depth` are under way. */
uint16_t accelerator_submit(struct accelerator_queue *queue, struct accelerator_job **jobs,
			    uint16_t n);
/* At most `n` jobs that are done; serves when nobody else does. */
uint16_t accelerator_collect(struct accelerator_queue *queue, struct accelerator_job **jobs,
			     uint16_t n);
unsigned int accelerator_under_way(const struct accelerator_queue *queue);

/* Serve one request of each queue that has any, in turn. How many were served. */
unsigned int accelerator_serve(struct accelerator *accelerator);
/* Serve until `*stop`: what an lcore of its own runs. While it does, users do not serve. */
void accelerator_serve_until(struct accelerator *accelerator, const bool *stop);

#endif
