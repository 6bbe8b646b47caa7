/*
 * compression-bench: loads the compression accelerator, through one queue.
 *
 * `packet_size` is that of a packet of which what IPv4 carries is compressed, with its checksum: a
 * request then takes as long as one of IPCompGateway at the same packet size.
 */
#include <errno.h>

#include "accelerators/request_loop.h"
#include "core/bench.h"
#include "core/memory.h"
#include "core/packet.h"

#define HEADERS (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + RTE_ETHER_CRC_LEN)

enum { RATE_KPPS, PACKET_SIZE, WINDOW };
static const struct nf_parameter parameters[] = {
	[RATE_KPPS] = {"rate_kpps", "10^3 requests/s; 0: as fast as they are answered", 0, 1500, 0},
	[PACKET_SIZE] = {"packet_size", "bytes of the packets that are compressed", 64, 1500, 1500},
	[WINDOW] = {"window", "requests under way at most", 1, REQUEST_LOOP_REQUESTS, 128},
};

static int create(struct bench *bench)
{
	const struct request_load load = {
		.bytes = (uint16_t)(bench->settings[PACKET_SIZE] - HEADERS),
		.kpps = bench->settings[RATE_KPPS],
		.window = (unsigned int)bench->settings[WINDOW],
		.has_output = true,
	};
	struct request_loop *loop = nf_zalloc(sizeof(*loop));
	int error = loop ? request_loop_create(loop, "compression-bench",
					       bench->accelerators[ACCELERATOR_COMPRESSION], &load)
			 : -ENOMEM;

	if (error < 0)
		nf_free(loop);
	else
		bench->state = loop;
	return error;
}

static uint64_t step(struct bench *bench)
{
	return request_loop_step(bench->state);
}

static void destroy(struct bench *bench)
{
	request_loop_destroy(bench->state);
	nf_free(bench->state);
}

static struct bench_kind kind = {
	.name = "compression-bench",
	.help = "compresses payloads at a wanted rate",
	.unit = "requests",
	.accelerators = NF_USES(ACCELERATOR_COMPRESSION),
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.create = create,
	.step = step,
	.destroy = destroy,
};

BENCH_REGISTER(kind)
