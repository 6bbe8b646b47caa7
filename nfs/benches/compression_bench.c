/*
 * compression-bench: loads the compression accelerator through one queue.
 *
 * It compresses the IPv4 payload of a packet of `packet_size` bytes (with its frame checksum), so a
 * request takes as long as one of IPCompGateway at the same packet size.
 */
#include "accelerators/request_loop.h"
#include "core/bench.h"
#include "core/packet.h"

#define HEADERS (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + RTE_ETHER_CRC_LEN)

enum { RATE_KPPS, PACKET_SIZE, WINDOW };
static const struct nf_parameter parameters[] = {
	[RATE_KPPS] = {"rate_kpps", "10^3 requests/s; 0: unlimited", 0, 1500, 0},
	[PACKET_SIZE] = {"packet_size", "size of the compressed packets, bytes", 64, 1500, 1500},
	[WINDOW] = {"window", "most requests under way", 1, REQUEST_LOOP_REQUESTS, 128},
};

static int create(struct bench *bench)
{
	const struct request_load load = {
		.bytes = (uint16_t)(bench->settings[PACKET_SIZE] - HEADERS),
		.kpps = bench->settings[RATE_KPPS],
		.window = (unsigned int)bench->settings[WINDOW],
		.has_output = true,
	};

	return request_bench_create(bench, ACCELERATOR_COMPRESSION, &load);
}

REQUEST_BENCH("compression-bench", "compresses payloads at a given rate", ACCELERATOR_COMPRESSION)
