/* Sends requests to an accelerator at a given rate, without packets: the core of its bench. */
#pragma once

#include "accelerators/accelerator.h"
#include "core/bench.h"
#include "core/pace.h"

/* As many different requests as traffic has packets, so that they are as cold in the cache. */
#define REQUEST_LOOP_REQUESTS 512

/* One queue; the requests are reused in a ring. */
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
	double kpps;         /* requests; 0: as fast as they are completed */
	unsigned int window; /* most requests under way */
	bool has_output;
};

/*
 * Callbacks of a bench whose state is such a loop. `kind` is the accelerator's. 0, or a negative
 * errno after printing why.
 */
int request_bench_create(struct bench *bench, enum accelerator_kind kind,
			 const struct request_load *load);
uint64_t request_bench_step(struct bench *bench);
void request_bench_destroy(struct bench *bench);

/* 0, or a negative errno after printing why. */
int request_loop_create(struct request_loop *loop, const char *of, struct accelerator *accelerator,
			const struct request_load *load);
/* Submit due requests and collect completed ones; returns their number. */
uint64_t request_loop_step(struct request_loop *loop);
void request_loop_destroy(struct request_loop *loop);

/* Register such a bench, whose file has `parameters` and create(). */
#define REQUEST_BENCH(bench_name, bench_help, engine)                                              \
	static struct bench_kind kind = {                                                          \
		.name = bench_name,                                                                \
		.help = bench_help,                                                                \
		.unit = "requests",                                                                \
		.accelerators = NF_USES(engine),                                                   \
		.parameters = parameters,                                                          \
		.n_parameters = RTE_DIM(parameters),                                               \
		.create = create,                                                                  \
		.step = request_bench_step,                                                        \
		.destroy = request_bench_destroy,                                                  \
	};                                                                                         \
	BENCH_REGISTER(kind)
