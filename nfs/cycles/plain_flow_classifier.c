#include "cycles/codepoint.h"
#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct flow {
	uint64_t packets, bytes, last;
	uint8_t codepoint;
};

static void *create(void)
{
	return plain_flows_create("plain_flow_classifier", sizeof(struct plain_flows), PLAIN_FLOWS,
				  sizeof(struct flow));
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct plain_flows *flows = of;
	struct flow *entries = flows->entries;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	flows->now++;
	plain_look_up(flows->table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		struct flow *flow;

		if (places[i] < 0) {
			places[i] = rte_hash_add_key(flows->table, &keys[i]);
			entries[places[i]].codepoint = codepoint_of(keys[i].source_port);
		}
		flow = &entries[places[i]];
		flow->packets++;
		flow->bytes += rte_pktmbuf_pkt_len(packets[i]);
		flow->last = flows->now;
		put_codepoint(packets[i], flow->codepoint);
		nf_send(out, packets[i]);
	}
}

PLAIN_PEER_FREED(
	"FlowClassifier",
	"rte_hash_lookup_bulk, three counters and a class per flow, codepoint and checksum",
	plain_flows_destroy)
