/* The hash table of plain loops with flows, and its lookup. */
#pragma once

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"

#define PLAIN_FLOWS (1 << 19) /* as many as the functions' default */

/* NULL without memory. */
static inline struct rte_hash *plain_table(const char *name, uint32_t entries)
{
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = entries,
		.key_len = sizeof(struct flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};

	return rte_hash_create(&parameters);
}

/* A zeroed array of entries, one per slot of a table. */
static inline void *plain_entries(const struct rte_hash *table, size_t bytes)
{
	return table ? nf_zalloc((rte_hash_max_key_id(table) + 1) * bytes) : NULL;
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
