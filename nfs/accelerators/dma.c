/*
 * Copies bytes as a card's DMA engine does, with the core that serves it; and dma-bench, which
 * loads it with packets of `packet_size` bytes (with their frame checksum).
 */
#include <errno.h>

#include "accelerators/request_loop.h"
#include "core/packet.h"

static void *start(void)
{
	static char no_state;

	return &no_state;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	(void)state;
	backend_begin(job);
	job->status = job->length <= job->room ? 0 : -ENOSPC;
	if (job->status == 0) {
		memcpy(job->output, job->input, job->length);
		job->produced = job->length;
	}
	return BACKEND_DONE;
}

static void stop(void *state)
{
	(void)state;
}

BACKEND(backend, "memcpy", "copies, on the serving core", .kind = ACCELERATOR_DMA, .preference = 10,
	.create = start, .submit = submit, .destroy = stop)

enum { RATE_KPPS, PACKET_SIZE, WINDOW };
static const struct nf_parameter parameters[] = {
	[RATE_KPPS] = {"rate_kpps", "10^3 requests/s; 0: unlimited", 0, 4000, 0},
	[PACKET_SIZE] = {"packet_size", "size of the copied packets, bytes", 64, 1500, 1500},
	[WINDOW] = {"window", "most requests under way", 1, REQUEST_LOOP_REQUESTS, 128},
};

static int create(struct bench *bench)
{
	const struct request_load load = {
		.bytes = (uint16_t)(bench->settings[PACKET_SIZE] - RTE_ETHER_CRC_LEN),
		.kpps = bench->settings[RATE_KPPS],
		.window = (unsigned int)bench->settings[WINDOW],
		.has_output = true,
	};

	return request_bench_create(bench, ACCELERATOR_DMA, &load);
}

REQUEST_BENCH("dma-bench", "copies packets at a given rate", ACCELERATOR_DMA)
