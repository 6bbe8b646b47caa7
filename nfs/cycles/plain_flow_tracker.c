#include <stdbool.h>

#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct connection {
	uint64_t last;
	uint8_t state; /* 0: none, 1: one end has sent, 2: both */
	uint8_t first; /* the end that has sent */
};

struct tracker {
	struct rte_hash *table;
	struct connection *connections;
	uint64_t now, states[3];
};

static void *create(uint32_t flows)
{
	struct tracker *state = nf_zalloc(sizeof(*state));

	(void)flows;
	state->table = plain_table("plain_flow_tracker", PLAIN_FLOWS);
	state->connections = plain_entries(state->table, sizeof(*state->connections));
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct tracker *state = of;
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST];
	bool ends[NF_BURST];
	int32_t places[NF_BURST];

	state->now++;
	for (uint16_t i = 0; i < n; i++) {
		keys[i] = packet_plain_flow(packets[i]);
		ends[i] = keys[i].source > keys[i].destination;
		if (ends[i])
			keys[i] = flow_reversed(&keys[i]);
		wanted[i] = &keys[i];
	}
	rte_hash_lookup_bulk(state->table, wanted, n, places);
	for (uint16_t i = 0; i < n; i++) {
		const int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(state->table, &keys[i]);
		struct connection *connection = &state->connections[place];

		connection->last = state->now;
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

static void destroy(void *of)
{
	struct tracker *state = of;

	rte_hash_free(state->table);
	nf_free(state->connections);
	nf_free(state);
}

PLAIN_PEER("FlowTracker", "rte_hash_lookup_bulk of a direction-independent key, record of the "
	   "ends that sent")
