/* The loop for FlowMonitor and NIDS, which differ only in what they store for a match. */

#include "cycles/peer.h"
#include "cycles/plain_scan.h"
#include "cycles/plain_table.h"

struct flow {
	uint64_t packets, bytes, last, matches;
};

struct monitor {
	struct plain_flows flows;
	struct plain_scan scan;
};

static void *create(void)
{
	struct monitor *state = plain_flows_create("plain_flow_monitor", sizeof(*state),
						   PLAIN_FLOWS, sizeof(struct flow));

	return state && plain_scan_create(&state->scan) ? state : NULL;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct monitor *state = of;
	struct flow *flows = state->flows.entries;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	state->flows.now++;
	plain_look_up(state->flows.table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(state->flows.table, &keys[i]);
		struct flow *flow = &flows[place];

		flow->packets++;
		flow->bytes += rte_pktmbuf_pkt_len(packets[i]);
		flow->last = state->flows.now;
		flow->matches += plain_scan_packet(&state->scan, packets[i]);
		nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct monitor *state = of;

	plain_scan_destroy(&state->scan);
	plain_flows_destroy(state);
}

#define DOES "rte_hash_lookup_bulk, four counters per flow, hs_scan of each payload"

static struct peer monitor = {"FlowMonitor", "plain loop", DOES, create, process, destroy, NULL};
static struct peer nids = {"NIDS", "plain loop", DOES, create, process, destroy, NULL};

PEER_REGISTER(monitor)
PEER_REGISTER(nids)
