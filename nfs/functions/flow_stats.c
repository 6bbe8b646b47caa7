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

#include "core/flow_burst.h"
#include "core/memory.h"
#include "core/nf.h"

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

/* What is known of a flow; its key is in the table. */
struct flow {
	uint64_t packets, bytes;
	uint64_t last_us; /* 0: no flow is here */
};

struct flow_stats {
	struct rte_hash *table; /* flow key to a place in `flows` */
	struct flow *flows;
	uint32_t places;
	uint32_t next_aged;
	uint64_t timeout_us, us_per_look;
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
		stats->us_per_look = stats->timeout_us / stats->places + 1;
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

static void forget(struct nf *nf, struct flow_stats *stats, uint32_t place)
{
	void *key;

	if (rte_hash_get_key_with_position(stats->table, (int32_t)place, &key) == 0)
		rte_hash_del_key(stats->table, key);
	stats->flows[place].last_us = 0;
	nf->counters[AGED]++;
}

/* Look at as many flows as time has passed since the last look, of all in one timeout. */
static void age(struct nf *nf, struct flow_stats *stats)
{
	uint64_t passed = RTE_MIN(nf->now_us - stats->aged_us, stats->timeout_us);
	uint32_t looks;

	if (passed < stats->us_per_look)
		return;
	stats->aged_us = nf->now_us;
	for (looks = (uint32_t)(stats->places * passed / stats->timeout_us); looks > 0; looks--) {
		const struct flow *flow = &stats->flows[stats->next_aged];

		if (flow->last_us && nf->now_us - flow->last_us >= stats->timeout_us)
			forget(nf, stats, stats->next_aged);
		stats->next_aged = stats->next_aged + 1 < stats->places ? stats->next_aged + 1 : 0;
	}
}

/* The place of a flow that was not in the table; negative when that is full. */
static int32_t start(struct nf *nf, struct flow_stats *stats, const struct flow_key *key)
{
	int32_t place = rte_hash_add_key(stats->table, key);

	if (place < 0)
		return place;
	/* the burst may have started it already */
	if (stats->flows[place].last_us == 0) {
		stats->flows[place] = (struct flow){0};
		nf->counters[STARTED]++;
	}
	return place;
}

/* Count a burst: looked up, and fetched, together so that the flows' cache misses overlap. */
static void count(struct nf *nf, struct flow_burst *burst, struct nf_out *out)
{
	struct flow_stats *stats = nf->state;
	const uint64_t now_us = nf->now_us;
	uint64_t bytes = 0, untracked = 0;
	int32_t places[NF_BURST];

	rte_hash_lookup_bulk(stats->table, burst->wanted, burst->n, places);
	for (uint16_t i = 0; i < burst->n; i++)
		rte_prefetch0(&stats->flows[places[i]]);
	for (uint16_t i = 0; i < burst->n; i++) {
		const uint32_t length = rte_pktmbuf_pkt_len(burst->packets[i]);
		struct flow *flow;

		nf_send(out, burst->packets[i]);
		if (unlikely(places[i] < 0))
			places[i] = start(nf, stats, &burst->keys[i]);
		if (unlikely(places[i] < 0)) {
			untracked++;
			continue;
		}
		flow = &stats->flows[places[i]];
		flow->packets++;
		flow->bytes += length;
		flow->last_us = now_us;
		bytes += length;
	}
	nf->counters[PACKETS] += burst->n - untracked;
	nf->counters[UNTRACKED] += untracked;
	nf->counters[BYTES] += bytes;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_burst burst;

	age(nf, nf->state);
	flow_burst_read(&burst, packets, n, out);
	nf->counters[OTHER] += burst.other;
	nf->counters[MALFORMED] += burst.malformed;
	if (likely(burst.n > 0))
		count(nf, &burst, out);
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
