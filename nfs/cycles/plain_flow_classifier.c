#include "cycles/plain.h"
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

/* The service that many flows of the traffic belong to: calls. */
static uint8_t codepoint_of(const struct flow_key *key)
{
	const uint16_t port = rte_be_to_cpu_16(key->source_port);

	return port >= 16384 && port < 32768 ? 46 << 2 : 0;
}

static void mark(struct rte_mbuf *packet, uint8_t codepoint)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *,
							  sizeof(struct rte_ether_hdr));
	const uint8_t service = codepoint | (ip->type_of_service & RTE_IPV4_HDR_ECN_MASK);

	if (service == ip->type_of_service)
		return;
	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, rte_cpu_to_be_16(ip->type_of_service),
					    rte_cpu_to_be_16(service));
	ip->type_of_service = service;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct classifier *state = of;
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST];
	int32_t places[NF_BURST];

	state->now++;
	for (uint16_t i = 0; i < n; i++) {
		keys[i] = packet_plain_flow(packets[i]);
		wanted[i] = &keys[i];
	}
	rte_hash_lookup_bulk(state->table, wanted, n, places);
	for (uint16_t i = 0; i < n; i++) {
		struct flow *flow;

		if (places[i] < 0) {
			places[i] = rte_hash_add_key(state->table, &keys[i]);
			state->flows[places[i]].codepoint = codepoint_of(&keys[i]);
		}
		flow = &state->flows[places[i]];
		flow->packets++;
		flow->bytes += rte_pktmbuf_pkt_len(packets[i]);
		flow->last = state->now;
		mark(packets[i], flow->codepoint);
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

static struct plain plain = {
	.function = "FlowClassifier",
	.does = "rte_hash_lookup_bulk, three counters and a class per flow, codepoint and checksum",
	.create = create,
	.process = process,
	.destroy = destroy,
};

PLAIN_REGISTER(plain)
