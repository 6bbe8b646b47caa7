/*
 * regex-bench: loads the regex accelerator with scans of payloads through one queue.
 *
 * It scans the payload of a UDP packet of `packet_size` bytes (with its frame checksum), so a scan
 * takes as long as that of a network function at the same packet size and match rate.
 */
#include "accelerators/request_loop.h"
#include "core/bench.h"
#include "core/packet.h"

#define HEADERS                                                                                    \
	(sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr) + \
	 RTE_ETHER_CRC_LEN)

enum { MTBR, RATE_KPPS, PACKET_SIZE, WINDOW };
static const struct nf_parameter parameters[] = {
	[MTBR] = {"mtbr", "matches per 10^6 bytes of payload", 0, 1100, 600},
	[RATE_KPPS] = {"rate_kpps", "10^3 requests/s; 0: unlimited", 0, 4000, 0},
	[PACKET_SIZE] = {"packet_size", "size of the scanned packets, bytes", 64, 1500, 1500},
	[WINDOW] = {"window", "most requests under way", 1, REQUEST_LOOP_REQUESTS, 128},
};

static int create(struct bench *bench)
{
	const struct request_load load = {
		.bytes = (uint16_t)(bench->settings[PACKET_SIZE] - HEADERS),
		.mtbr = bench->settings[MTBR],
		.kpps = bench->settings[RATE_KPPS],
		.window = (unsigned int)bench->settings[WINDOW],
	};

	return request_bench_create(bench, ACCELERATOR_REGEX, &load);
}

REQUEST_BENCH("regex-bench", "scans payloads at a given rate and match rate", ACCELERATOR_REGEX)
