#include <stdbool.h>

#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct connection {
	uint64_t last;
	uint8_t state; /* 0: none, 1: one end has sent, 2: both */
	uint8_t first; /* the end that has sent */
};

struct tracker {
	struct plain_flows flows;
	uint64_t states[3];
};

static void *create(void)
{
	return plain_flows_create("plain_flow_tracker", sizeof(struct tracker), PLAIN_FLOWS,
				  sizeof(struct connection));
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct tracker *state = of;
	struct connection *connections = state->flows.entries;
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST];
	bool ends[NF_BURST];
	int32_t places[NF_BURST];

	state->flows.now++;
	for (uint16_t i = 0; i < n; i++) {
		keys[i] = packet_plain_flow(packets[i]);
		ends[i] = keys[i].source > keys[i].destination;
		if (ends[i])
			keys[i] = flow_reversed(&keys[i]);
		wanted[i] = &keys[i];
	}
	rte_hash_lookup_bulk(state->flows.table, wanted, n, places);
	for (uint16_t i = 0; i < n; i++) {
		const int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(state->flows.table, &keys[i]);
		struct connection *connection = &connections[place];

		connection->last = state->flows.now;
		if (connection->state == 0) {
			connection->state = 1;
			connection->first = ends[i];
			state->states[1]++;
		} else if (connection->state == 1 && connection->first != ends[i]) {
			connection->state = 2;
			state->states[2]++;
		}
		nf_send(out, packets[i]);
	}
}

PLAIN_PEER_FREED(
	"FlowTracker",
	"rte_hash_lookup_bulk of a direction-independent key, record of the ends that sent",
	plain_flows_destroy)
