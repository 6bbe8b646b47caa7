/*
 * FlowStats: packets and bytes of every flow, with aging.
 *
 * A flow that was silent for `timeout_s` is forgotten: each burst looks at a few flows, so that
 * the whole table is seen once a `timeout_s` without ever stopping for it. A full table counts
 * packets of new flows, and lets them pass.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"

enum { MOST_FLOWS, TIMEOUT_S };
static const struct nf_parameter parameters[] = {
	[MOST_FLOWS] = {"flows", "flows that the table holds", 8, 1 << 22, 1 << 19},
	[TIMEOUT_S] = {"timeout_s", "silence after which a flow is forgotten, s", 0.001, 86400, 60},
};

enum { PACKETS, BYTES, STARTED, AGED, UNTRACKED, OTHER, MALFORMED };
static const struct nf_counter counters[] = {
	[PACKETS] = {"packets", "IPv4 packets of flows in the table"},
	[BYTES] = {"bytes", "of those packets"},
	[STARTED] = {"started", "flows that began"},
	[AGED] = {"aged", "flows that were forgotten"},
	[UNTRACKED] = {"untracked", "packets whose flow found no place"},
	[OTHER] = {"other", "packets that are not IPv4, sent on as they are"},
	[MALFORMED] = {"malformed", "packets freed"},
};

struct flow {
	uint64_t packets, bytes;
	uint64_t last_us;
	struct flow_key key;
	bool used;
};

struct flow_stats {
	struct rte_hash *table; /* flow key to a place in `flows` */
	struct flow *flows;
	uint32_t places;
	uint32_t next_aged;
	uint64_t timeout_us;
	uint64_t aged_us; /* when aging last looked */
};

static int create(struct nf *nf)
{
	static unsigned int made;
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters table = {
		.name = name,
		.entries = (uint32_t)nf->settings[MOST_FLOWS],
		.key_len = sizeof(struct flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = nf->socket,
	};
	struct flow_stats *stats = nf_zalloc(sizeof(*stats));

	if (!stats)
		return -ENOMEM;
	snprintf(name, sizeof(name), "flow_stats_%u",
		 __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
	stats->timeout_us = (uint64_t)(nf->settings[TIMEOUT_S] * 1e6);
	stats->table = rte_hash_create(&table);
	if (stats->table) {
		stats->places = (uint32_t)rte_hash_max_key_id(stats->table) + 1;
		stats->flows = nf_zalloc(stats->places * sizeof(*stats->flows));
	}
	if (!stats->flows) {
		fprintf(stderr, "FlowStats: no memory for a table of %u flows\n", table.entries);
		rte_hash_free(stats->table);
		nf_free(stats);
		return -ENOMEM;
	}
	nf->state = stats;
	return 0;
}

/* Look at as many flows as time has passed since the last look, of all in one timeout. */
static void age(struct nf *nf, struct flow_stats *stats)
{
	uint64_t passed = RTE_MIN(nf->now_us - stats->aged_us, stats->timeout_us);
	uint32_t looks = (uint32_t)(stats->places * passed / stats->timeout_us);

	if (looks == 0)
		return;
	stats->aged_us = nf->now_us;
	for (; looks > 0; looks--) {
		struct flow *flow = &stats->flows[stats->next_aged];

		stats->next_aged = stats->next_aged + 1 < stats->places ? stats->next_aged + 1 : 0;
		if (!flow->used || nf->now_us - flow->last_us < stats->timeout_us)
			continue;
		rte_hash_del_key(stats->table, &flow->key);
		flow->used = false;
		nf->counters[AGED]++;
	}
}

static void start(struct nf *nf, struct flow *flow, const struct flow_key *key)
{
	*flow = (struct flow){.key = *key, .used = true};
	nf->counters[STARTED]++;
}

static void account(struct nf *nf, struct flow *flow, const struct rte_mbuf *packet)
{
	flow->packets++;
	flow->bytes += rte_pktmbuf_pkt_len(packet);
	flow->last_us = nf->now_us;
	nf->counters[PACKETS]++;
	nf->counters[BYTES] += rte_pktmbuf_pkt_len(packet);
}

/* Count the flows of a burst; they are looked up together so that their cache misses overlap. */
static void count(struct nf *nf, struct rte_mbuf **packets, const struct flow_key *keys, uint16_t n)
{
	struct flow_stats *stats = nf->state;
	const void *wanted[NF_BURST];
	int32_t places[NF_BURST];

	for (uint16_t i = 0; i < n; i++)
		wanted[i] = &keys[i];
	rte_hash_lookup_bulk(stats->table, wanted, n, places);
	for (uint16_t i = 0; i < n; i++) {
		int32_t place =
			places[i] >= 0 ? places[i] : rte_hash_add_key(stats->table, wanted[i]);
		struct flow *flow;

		if (place < 0) {
			nf->counters[UNTRACKED]++;
			continue;
		}
		flow = &stats->flows[place];
		if (!flow->used)
			start(nf, flow, &keys[i]);
		account(nf, flow, packets[i]);
	}
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct rte_mbuf *tracked[NF_BURST];
	struct flow_key keys[NF_BURST];
	uint16_t n_tracked = 0;

	age(nf, nf->state);
	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_parse(packets[i]);

		if (packet.type == PACKET_MALFORMED) {
			nf->counters[MALFORMED]++;
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		if (packet.type == PACKET_IPV4) {
			keys[n_tracked] = packet_flow(packets[i], &packet);
			tracked[n_tracked++] = packets[i];
		} else {
			nf->counters[OTHER]++;
		}
		nf_send(out, packets[i]);
	}
	if (n_tracked > 0)
		count(nf, tracked, keys, n_tracked);
}

static void destroy(struct nf *nf)
{
	struct flow_stats *stats = nf->state;

	rte_hash_free(stats->table);
	nf_free(stats->flows);
	nf_free(stats);
}

static struct nf_kind kind = {
	.name = "FlowStats",
	.help = "packets and bytes of every flow, with aging",
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.counters = counters,
	.n_counters = RTE_DIM(counters),
	.create = create,
	.process = process,
	.destroy = destroy,
};

NF_REGISTER(kind)
