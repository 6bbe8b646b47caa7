#include <string.h>

#include <zlib.h>

#include "core/memory.h"
#include "core/packet.h"
#include "cycles/peer.h"
#include "cycles/plain_scan.h"

#define IP_AT sizeof(struct rte_ether_hdr)
#define BEHIND_IP (IP_AT + sizeof(struct rte_ipv4_hdr))
#define IPCOMP 108
#define HEADER 4

struct gateway {
	struct plain_scan scan;
	z_stream stream;
	struct rte_mempool *spare;
	uint64_t matches;
	uint8_t output[2048];
};

static void *create(void)
{
	struct gateway *state = nf_zalloc(sizeof(*state));

	state->spare = rte_pktmbuf_pool_create("plain_gateway", 1023, 0, 0,
					       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!state->spare || !plain_scan_create(&state->scan) ||
	    deflateInit2(&state->stream, Z_BEST_SPEED, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) !=
		    Z_OK)
		return NULL;
	return state;
}

/* Into a new packet: the received payload will be sent again. */
static struct rte_mbuf *made_of(struct gateway *state, struct rte_mbuf *packet, uint32_t produced)
{
	struct rte_mbuf *packet_spec = rte_pktmbuf_alloc(state->spare);
	uint8_t *to = (uint8_t *)rte_pktmbuf_append(packet_spec, BEHIND_IP + HEADER + produced);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(to + IP_AT);

	memcpy(to, rte_pktmbuf_mtod(packet, const uint8_t *), BEHIND_IP);
	memcpy(to + BEHIND_IP, (uint8_t[HEADER]){ip->next_proto_id, 0, 0, 2}, HEADER);
	memcpy(to + BEHIND_IP + HEADER, state->output, produced);
	ip->next_proto_id = IPCOMP;
	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + HEADER + produced);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	rte_pktmbuf_free(packet);
	return packet_spec;
}

/* Compress the bytes behind the IPv4 header if they shrink. */
static struct rte_mbuf *compressed(struct gateway *state, struct rte_mbuf *packet)
{
	const uint32_t length = rte_pktmbuf_data_len(packet) - BEHIND_IP;
	uint32_t produced;

	deflateReset(&state->stream);
	state->stream.next_in = rte_pktmbuf_mtod_offset(packet, uint8_t *, BEHIND_IP);
	state->stream.avail_in = length;
	state->stream.next_out = state->output;
	state->stream.avail_out = sizeof(state->output);
	if (deflate(&state->stream, Z_FINISH) != Z_STREAM_END)
		return packet;
	produced = sizeof(state->output) - state->stream.avail_out;
	return produced + HEADER < length ? made_of(state, packet, produced) : packet;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct gateway *state = of;

	for (uint16_t i = 0; i < n; i++) {
		state->matches += plain_scan_packet(&state->scan, packets[i]);
		nf_send(out, compressed(state, packets[i]));
	}
}

static void destroy(void *of)
{
	struct gateway *state = of;

	plain_scan_destroy(&state->scan);
	deflateEnd(&state->stream);
	rte_mempool_free(state->spare);
	nf_free(state);
}

PLAIN_PEER("IPCompGateway", "hs_scan of each payload, deflate of the bytes behind the IPv4 header")
