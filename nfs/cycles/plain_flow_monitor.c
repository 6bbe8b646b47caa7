/* The loop for FlowMonitor and NIDS, which differ only in what they store for a match. */

#include "cycles/peer.h"
#include "cycles/plain_scan.h"
#include "cycles/plain_table.h"

struct flow {
	uint64_t packets, bytes, last, matches;
};

struct monitor {
	struct plain_scan scan;
	struct rte_hash *table;
	struct flow *flows;
	uint64_t now;
};

static void *create(uint32_t flows)
{
	struct monitor *state = nf_zalloc(sizeof(*state));

	(void)flows;
	if (!plain_scan_create(&state->scan))
		return NULL;
	state->table = plain_table("plain_flow_monitor", PLAIN_FLOWS);
	state->flows = plain_entries(state->table, sizeof(*state->flows));
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct monitor *state = of;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	state->now++;
	plain_look_up(state->table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(state->table, &keys[i]);
		struct flow *flow = &state->flows[place];

		flow->packets++;
		flow->bytes += rte_pktmbuf_pkt_len(packets[i]);
		flow->last = state->now;
		flow->matches += plain_scan_packet(&state->scan, packets[i]);
		nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct monitor *state = of;

	plain_scan_destroy(&state->scan);
	rte_hash_free(state->table);
	nf_free(state->flows);
	nf_free(state);
}

#define DOES "rte_hash_lookup_bulk, four counters per flow, hs_scan of each payload"

static struct peer monitor = {"FlowMonitor", "plain loop", DOES, create, process, destroy, NULL};
static struct peer nids = {"NIDS", "plain loop", DOES, create, process, destroy, NULL};

PEER_REGISTER(monitor)
PEER_REGISTER(nids)
