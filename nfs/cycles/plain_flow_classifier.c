#include "cycles/codepoint.h"
#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct flow {
	uint64_t packets, bytes, last;
	uint8_t codepoint;
};

struct classifier {
	struct rte_hash *table;
	struct flow *flows;
	uint64_t now;
};

static void *create(uint32_t flows)
{
	struct classifier *state = nf_zalloc(sizeof(*state));

	(void)flows;
	state->table = plain_table("plain_flow_classifier", PLAIN_FLOWS);
	state->flows = plain_entries(state->table, sizeof(*state->flows));
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct classifier *state = of;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	state->now++;
	plain_look_up(state->table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		struct flow *flow;

		if (places[i] < 0) {
			places[i] = rte_hash_add_key(state->table, &keys[i]);
			state->flows[places[i]].codepoint = codepoint_of(keys[i].source_port);
		}
		flow = &state->flows[places[i]];
		flow->packets++;
		flow->bytes += rte_pktmbuf_pkt_len(packets[i]);
		flow->last = state->now;
		put_codepoint(packets[i], flow->codepoint);
		nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct classifier *state = of;

	rte_hash_free(state->table);
	nf_free(state->flows);
	nf_free(state);
}

PLAIN_PEER("FlowClassifier", "rte_hash_lookup_bulk, three counters and a class per flow, "
	   "codepoint and checksum")
