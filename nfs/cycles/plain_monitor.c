#include <rte_hash_crc.h>

#include "core/memory.h"
#include "cycles/peer.h"
#include "functions/monitor/top_talkers.h"

#define TALKERS 1024

struct monitor {
	struct top_talkers top;
	uint64_t packets, bytes;
};

static void *create(void)
{
	struct monitor *state = nf_zalloc(sizeof(*state));

	return state && top_talkers_create(&state->top, "plain_monitor", TALKERS) == 0 ? state
										       : NULL;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	static const uint8_t no_ends[32]; /* read of IPv6 only */
	struct monitor *state = of;

	for (uint16_t i = 0; i < n; i++) {
		const struct flow_key flow = packet_plain_flow(packets[i]);
		const uint32_t bytes = rte_pktmbuf_pkt_len(packets[i]);

		top_talkers_count(&state->top, &flow, no_ends, rte_hash_crc(&flow, sizeof(flow), 0),
				  bytes);
		state->packets++;
		state->bytes += bytes;
	}
	nf_send_bulk(out, packets, n);
}

static void destroy(void *of)
{
	struct monitor *state = of;

	top_talkers_destroy(&state->top);
	nf_free(state);
}

PLAIN_PEER("Monitor", "the counter of the flow, found by its CRC, and the order of counters")
