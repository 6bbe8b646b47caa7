#include "accelerators/request_loop.h"

#include <errno.h>
#include <stdio.h>

#include <rte_debug.h>

#include "core/memory.h"
#include "core/payloads.h"

#define BATCH 32u
#define BUFFER_SIZE 2048
#define SEED 1

static void fill(struct request_loop *loop, const struct request_load *load)
{
	struct payloads payloads = payloads_at(load->mtbr, SEED);

	for (unsigned int i = 0; i < REQUEST_LOOP_REQUESTS; i++) {
		uint8_t *input = loop->inputs + (size_t)i * BUFFER_SIZE;

		payloads_fill(&payloads, input, load->bytes);
		loop->jobs[i] = (struct accelerator_job){.input = input, .length = load->bytes};
		if (load->has_output) {
			loop->jobs[i].output = loop->outputs + (size_t)i * BUFFER_SIZE;
			loop->jobs[i].room = BUFFER_SIZE;
		}
	}
}

int request_loop_create(struct request_loop *loop, const char *of, struct accelerator *accelerator,
			const struct request_load *load)
{
	*loop = (struct request_loop){
		.jobs = nf_zalloc(REQUEST_LOOP_REQUESTS * sizeof(*loop->jobs)),
		.inputs = nf_zalloc((size_t)REQUEST_LOOP_REQUESTS * BUFFER_SIZE),
		.outputs = load->has_output ? nf_zalloc((size_t)REQUEST_LOOP_REQUESTS * BUFFER_SIZE)
					    : NULL,
	};
	if (!loop->jobs || !loop->inputs || (load->has_output && !loop->outputs)) {
		fprintf(stderr, "%s: no memory for %d requests\n", of, REQUEST_LOOP_REQUESTS);
		request_loop_destroy(loop);
		return -ENOMEM;
	}
	loop->queue = accelerator_attach(accelerator, load->window);
	if (!loop->queue) {
		request_loop_destroy(loop);
		return -ENOSPC;
	}
	fill(loop, load);
	loop->window = load->window;
	loop->pace = pace_at(load->kpps * 1e3);
	return 0;
}

uint64_t request_loop_step(struct request_loop *loop)
{
	struct accelerator_job *jobs[BATCH];
	const unsigned int room = loop->window - accelerator_under_way(loop->queue);
	unsigned int n = 0;

	while (n < RTE_MIN(room, BATCH) && pace_may(&loop->pace, 1)) {
		jobs[n++] = &loop->jobs[loop->next];
		loop->next = (loop->next + 1) % REQUEST_LOOP_REQUESTS;
	}
	if (n > 0 && accelerator_submit(loop->queue, jobs, (uint16_t)n) < n)
		rte_panic("a queue with room for %u requests rejected %u\n", room, n);
	return accelerator_collect(loop->queue, jobs, BATCH);
}

void request_loop_destroy(struct request_loop *loop)
{
	struct accelerator_job *jobs[BATCH];

	while (loop->queue && accelerator_under_way(loop->queue) > 0)
		accelerator_collect(loop->queue, jobs, BATCH);
	accelerator_detach(loop->queue);
	nf_free(loop->jobs);
	nf_free(loop->inputs);
	nf_free(loop->outputs);
}

int request_bench_create(struct bench *bench, enum accelerator_kind kind,
			 const struct request_load *load)
{
	struct request_loop *loop = nf_zalloc(sizeof(*loop));
	int error = -ENOMEM;

	if (loop)
		error = request_loop_create(loop, bench->kind->name, bench->accelerators[kind],
					    load);
	if (error < 0)
		nf_free(loop);
	else
		bench->state = loop;
	return error;
}

uint64_t request_bench_step(struct bench *bench)
{
	return request_loop_step(bench->state);
}

void request_bench_destroy(struct bench *bench)
{
	request_loop_destroy(bench->state);
	nf_free(bench->state);
}
