#include "cycles/peer.h"
#include "cycles/plain_table.h"

struct statistics {
	uint64_t packets, bytes, last;
};

static void *create(void)
{
	return plain_flows_create("plain_flow_stats", sizeof(struct plain_flows), PLAIN_FLOWS,
				  sizeof(struct statistics));
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct plain_flows *flows = of;
	struct statistics *statistics = flows->entries;
	struct flow_key keys[NF_BURST];
	int32_t places[NF_BURST];

	flows->now++;
	plain_look_up(flows->table, packets, n, keys, places);
	for (uint16_t i = 0; i < n; i++) {
		int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(flows->table, &keys[i]);

		statistics[place].packets++;
		statistics[place].bytes += rte_pktmbuf_pkt_len(packets[i]);
		statistics[place].last = flows->now;
		nf_send(out, packets[i]);
	}
}

PLAIN_PEER_FREED("FlowStats", "rte_hash_lookup_bulk, three counters per flow", plain_flows_destroy)
