/*
 * A table of flows with aging: a flow that is silent for a timeout is removed within another one if
 * bursts are frequent enough to look at all entries (SWEEP_MOST each), or starts again with its
 * next packet.
 * Packets of new flows are counted as untracked while the table is full.
 */
#pragma once

#include "core/flow_burst.h"
#include "core/flow_index.h"
#include "core/nf.h"
#include "core/sweep.h"

/* Parameters of every function with such a table; declared first. */
enum { FLOW_MOST, FLOW_TIMEOUT_S, FLOW_PARAMETERS };
#define FLOW_TABLE_PARAMETERS                                                                      \
	[FLOW_MOST] = {"flows", "capacity of the table, flows", 8, FLOW_INDEX_MOST, 1 << 19},      \
	[FLOW_TIMEOUT_S] = {"timeout_s", "timeout of a silent flow, s", 0.001, 86400, 60}

/* Counters of every function with such a table; declared first. */
enum { FLOW_PACKETS, FLOW_BYTES, FLOW_STARTED, FLOW_AGED, FLOW_UNTRACKED, FLOW_COUNTERS };
#define FLOW_TABLE_COUNTERS                                                                        \
	[FLOW_PACKETS] = {"packets", "packets of flows in the table"},                        \
	[FLOW_BYTES] = {"bytes", "bytes of those packets"},                                        \
	[FLOW_STARTED] = {"started", "new flows"},                                                 \
	[FLOW_AGED] = {"aged", "flows removed after the timeout"},                                 \
	[FLOW_UNTRACKED] = {"untracked", "packets of flows beyond the table's capacity"}

/* A struct flow_entry. */
struct flow {
	struct flow_key key;
	uint64_t packets, bytes;
	uint64_t last_us; /* 0: the entry is unused */
	uint64_t mark;    /* for the function, initially 0 */
} __rte_aligned(sizeof(struct flow_entry));

struct flow_table {
	struct flow_index index;
	uint64_t timeout_us;
	struct sweep sweep;
};

static inline struct flow *flow_table_at(const struct flow_table *table, int32_t place)
{
	return (struct flow *)&table->index.entries[place];
}

/* Create a table by the function's settings. 0, or a negative errno after printing why. */
int flow_table_create(struct flow_table *table, const struct nf *nf);
void flow_table_destroy(struct flow_table *table);
/* For functions whose state is a table: see nf_kind. */
int flow_table_make(struct nf *nf);
void flow_table_end(struct nf *nf);

/*
 * Begin the flow of a packet, unless an earlier packet of the burst has; returns its place, or a
 * negative number if the table is full.
 */
int32_t flow_table_start(struct flow_table *table, struct nf *nf, const struct flow_key *key,
			 uint32_t hash);

/* Let a flow that was silent for too long start again. */
void flow_table_restart(struct flow_table *table, struct nf *nf, int32_t place);

/* Remove old flows among the next entries. */
void flow_table_remove_old(struct flow_table *table, struct nf *nf, uint32_t entries);

static inline void flow_table_age(struct flow_table *table, struct nf *nf)
{
	const uint32_t entries = sweep_due(&table->sweep, nf->now_us);

	if (unlikely(entries > 0))
		flow_table_remove_old(table, nf, entries);
}

/* Begin the lookup of a packet of a burst; required before flow_table_count(). */
static inline void flow_table_begin(const struct flow_index *index, struct flow_burst *burst,
				    size_t i)
{
	burst->hashes[i] = flow_index_hash(index, &burst->keys[i]);
	flow_index_prefetch(index, burst->hashes[i]);
}

/* Begin the lookup of the packets of IPv6 that were put aside. */
void flow_table_begin_ipv6(const struct flow_table *table, struct flow_burst *burst);

/* Read a burst and begin its lookup; `other` as for flow_burst_begin(). */
static inline void flow_table_read(const struct flow_table *table, struct flow_burst *burst,
				   struct nf *nf, unsigned int other, struct rte_mbuf **packets,
				   uint16_t n, struct nf_out *out)
{
	const struct flow_index index = table->index; /* a copy stays in registers, as does `at` */
	size_t at = 0;

	flow_burst_begin(burst, nf, other);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		if (likely(packet_is_plain(packet))) {
			burst->keys[at] = packet_plain_flow(packet);
		} else if (packet_is_plain_ipv6(packet)) {
			packet_plain_flow_ipv6(packet, &burst->keys[at]);
		} else {
			burst->n = (uint16_t)at;
			if (!flow_burst_read_any(burst, packet, out))
				continue;
		}
		burst->packets[at] = packet;
		flow_table_begin(&index, burst, at++);
	}
	burst->n = (uint16_t)at;
	if (unlikely(burst->n_ipv6 > 0))
		flow_table_begin_ipv6(table, burst);
}

/* Called for each packet of a burst; `place` is that of its flow, or negative. */
typedef void (*flow_table_each)(void *context, const struct flow_burst *burst, uint16_t i,
				int32_t place);

/*
 * Look up and count the packets of a burst together, so that cache misses overlap. Calls `each` per
 * packet, then sends it to `out`; either may be NULL. The flows' places are stored in `places`,
 * negative where there is none.
 */
static __rte_always_inline void flow_table_count_each(struct flow_table *table, struct nf *nf,
						      const struct flow_burst *burst,
						      int32_t places[NF_BURST], struct nf_out *out,
						      flow_table_each each, void *context)
{
	const uint64_t now_us = nf->now_us, timeout_us = table->timeout_us;
	const uint16_t n = burst->n;
	const struct flow_index index = table->index; /* a copy stays in registers */
	struct flow *const flows = flow_table_at(table, 0);
	uint64_t bytes = 0, untracked = 0;

	for (uint16_t i = 0; i < n; i++)
		places[i] = flow_index_guess(&index, burst->hashes[i]);
	for (uint16_t i = 0; i < n; i++) {
		const uint32_t length = rte_pktmbuf_pkt_len(burst->packets[i]);
		struct flow *flow = &flows[places[i]];

		if (unlikely(!flow_entry_has(flow, &burst->keys[i]))) {
			places[i] = flow_table_start(table, nf, &burst->keys[i], burst->hashes[i]);
			flow = &flows[places[i]];
		} else if (unlikely(now_us - flow->last_us >= timeout_us)) {
			flow_table_restart(table, nf, places[i]);
		}
		if (each)
			each(context, burst, i, places[i]);
		if (unlikely(places[i] < 0)) {
			untracked++;
			continue;
		}
		flow->packets++;
		flow->bytes += length;
		flow->last_us = now_us;
		bytes += length;
	}
	if (out)
		nf_send_bulk(out, burst->packets, n);
	nf->counters[FLOW_PACKETS] += n - untracked;
	nf->counters[FLOW_UNTRACKED] += untracked;
	nf->counters[FLOW_BYTES] += bytes;
}

static inline void flow_table_count(struct flow_table *table, struct nf *nf,
				    const struct flow_burst *burst, int32_t places[NF_BURST],
				    struct nf_out *out)
{
	flow_table_count_each(table, nf, burst, places, out, NULL, NULL);
}
