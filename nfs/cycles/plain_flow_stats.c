#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct statistics {
	uint64_t packets, bytes, last;
};

struct flows {
	struct rte_hash *table;
	struct statistics *statistics;
	uint64_t now;
};

static void *create(uint32_t flows)
{
	struct flows *state = nf_zalloc(sizeof(*state));

	(void)flows;
	state->table = plain_table("plain_flow_stats", PLAIN_FLOWS);
	state->statistics = plain_entries(state->table, sizeof(*state->statistics));
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flows *state = of;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	state->now++;
	plain_look_up(state->table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(state->table, &keys[i]);

		state->statistics[place].packets++;
		state->statistics[place].bytes += rte_pktmbuf_pkt_len(packets[i]);
		state->statistics[place].last = state->now;
		nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct flows *state = of;

	rte_hash_free(state->table);
	nf_free(state->statistics);
	nf_free(state);
}

PLAIN_PEER("FlowStats", "rte_hash_lookup_bulk, three counters per flow")
