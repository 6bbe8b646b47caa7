/* Requests to an accelerator without packets, at a wanted rate: what the benches of one do. */
#ifndef NFS_ACCELERATORS_REQUEST_LOOP_H
#define NFS_ACCELERATORS_REQUEST_LOOP_H

#include "accelerators/accelerator.h"
#include "core/bench.h"
#include "core/pace.h"

/* Different ones: as many as traffic has packets, so that they are as cold. */
#define REQUEST_LOOP_REQUESTS 512

/* One queue; the requests go round. */
struct request_loop {
	struct accelerator_queue *queue;
	struct accelerator_job *jobs;
	uint8_t *inputs, *outputs;
	unsigned int next, window;
	struct pace pace;
};

struct request_load {
	uint16_t bytes;      /* of a request */
	double mtbr;         /* matches per 10^6 of them */
	double kpps;         /* requests; 0: as fast as they are answered */
	unsigned int window; /* requests under way at most */
	bool has_output;
};

/*
 * A bench that is nothing but such a loop, as its state: its callbacks. `kind` is the
 * accelerator's. 0, or a negative errno after printing why.
 */
int request_bench_create(struct bench *bench, enum accelerator_kind kind,
			 const struct request_load *load);
uint64_t request_bench_step(struct bench *bench);
void request_bench_destroy(struct bench *bench);

/* 0, or a negative errno after printing why. */
int request_loop_create(struct request_loop *loop, const char *of, struct accelerator *accelerator,
			const struct request_load *load);
/* Submit what is due, collect what is done: how many were. */
uint64_t request_loop_step(struct request_loop *loop);
void request_loop_destroy(struct request_loop *loop);

#endif
