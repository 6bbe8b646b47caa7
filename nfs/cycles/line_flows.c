/* Peers of FlowStats and FlowClassifier with one flow per cache line. */
#include "core/memory.h"
#include "cycles/codepoint.h"
#include "cycles/line_table.h"
#include "cycles/peer.h"

#define FLOWS (1 << 19)        /* as many as the functions' default */
#define TIMEOUT_US 60000000ull /* also their default */
#define BURST_US 10            /* their clock here */

struct flows {
	struct line_table table;
	uint64_t now_us, untracked;
};

static void *create(void)
{
	struct flows *state = nf_zalloc(sizeof(*state));

	if (state && line_table_create(&state->table, FLOWS, TIMEOUT_US))
		return state;
	nf_free(state);
	return NULL;
}

static void destroy(void *of)
{
	struct flows *state = of;

	line_table_destroy(&state->table);
	nf_free(state);
}

/* Count a burst, and set its codepoints if `marks`. */
static __rte_always_inline void count(struct flows *state, struct rte_mbuf **packets, uint16_t n,
				      struct nf_out *out, bool marks)
{
	const uint64_t now_us = state->now_us + BURST_US;
	struct line_key keys[NF_BURST];
	uint32_t hashes[NF_BURST];

	state->now_us = now_us;
	line_table_age(&state->table, now_us);
	for (uint16_t i = 0; i < n; i++) {
		keys[i] = line_key(packets[i]);
		hashes[i] = line_hash(keys[i]);
		rte_prefetch0(line_home(&state->table, hashes[i]));
	}
	for (uint16_t i = 0; i < n; i++) {
		struct line *line = line_table_count(&state->table, keys[i], hashes[i],
						     rte_pktmbuf_pkt_len(packets[i]), now_us);

		state->untracked += line == NULL;
		if (!marks || unlikely(!line))
			continue;
		if (unlikely(line->mark == 0))
			line->mark =
				codepoint_of((rte_be16_t)keys[i].ports_and_protocol) | 1u << 8;
		put_codepoint(packets[i], (uint8_t)line->mark);
	}
	nf_send_bulk(out, packets, n);
}

static void process_statistics(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	count(of, packets, n, out, false);
}

static void process_classes(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	count(of, packets, n, out, true);
}

#define DOES "open addressing with one flow per cache line, three counters, aging"

static struct peer statistics = {
	.function = "FlowStats",
	.name = "line table",
	.does = DOES,
	.create = create,
	.process = process_statistics,
	.destroy = destroy,
};

static struct peer classes = {
	.function = "FlowClassifier",
	.name = "line table",
	.does = DOES ", codepoint and checksum",
	.create = create,
	.process = process_classes,
	.destroy = destroy,
};

PEER_REGISTER(statistics)
PEER_REGISTER(classes)
