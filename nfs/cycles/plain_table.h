/* The hash table of plain loops with flows, and its lookup. */
#pragma once

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"

#define PLAIN_FLOWS (1 << 19) /* as many as the functions' default */

/* Flows with an entry each, of which a peer makes what it needs. */
struct plain_flows {
	struct rte_hash *table;
	void *entries; /* one per slot of the table, initially 0 */
	uint64_t now;  /* bursts so far */
};

/* The state of a peer of `bytes`, which begins with its flows; NULL without memory. */
static inline void *plain_flows_create(const char *name, size_t bytes, uint32_t most, size_t entry)
{
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = most,
		.key_len = sizeof(struct flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};
	struct plain_flows *flows = nf_zalloc_for(name, bytes);

	if (!flows)
		return NULL;
	flows->table = rte_hash_create(&parameters);
	if (flows->table)
		flows->entries =
			nf_zalloc_for(name, (rte_hash_max_key_id(flows->table) + 1) * entry);
	return flows->entries ? flows : NULL;
}

static void plain_flows_destroy(void *state)
{
	struct plain_flows *flows = state;

	rte_hash_free(flows->table);
	nf_free(flows->entries);
	nf_free(flows);
}

/* The places of a burst's flows, negative where there is none. */
static inline void plain_look_up(const struct rte_hash *table, struct rte_mbuf **packets,
				 uint16_t n, struct flow_key *keys, int32_t *places)
{
	const void *wanted[NF_BURST];

	for (uint16_t i = 0; i < n; i++) {
		keys[i] = packet_plain_flow(packets[i]);
		wanted[i] = &keys[i];
	}
	rte_hash_lookup_bulk(table, wanted, n, places);
}
