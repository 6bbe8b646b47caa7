/*
 * Maps flow keys to entries of one cache line, which hold the key and never move.
 *
 * rte_hash costs three cache misses per packet instead of two (buckets, keys, and the caller's
 * entries), and twice the cycles. Here slots of 4 bytes with open addressing (linear probing) refer
 * to the entries. At most half of the slots are used, and a removed flow leaves no mark: those
 * behind it move up. So the time of a lookup does not depend on the flows that came and went.
 *
 * A burst is looked up in steps, so that cache misses overlap: flow_index_hash() of all packets,
 * then flow_index_guess() of all, then flow_entry_has() for each. Only one thread uses an index.
 */
#pragma once

#include <rte_prefetch.h>

#include "core/packet.h"

#define FLOW_INDEX_MOST (1u << 22) /* entries */
#define FLOW_INDEX_PLACE_BITS 23   /* of a slot; the others are a tag, bits of the hash */

/* An entry: a key and the caller's data, which are zeros while there is no key. */
struct flow_entry {
	struct flow_key key;
	uint8_t data[RTE_CACHE_LINE_MIN_SIZE - sizeof(struct flow_key)];
} __rte_aligned(RTE_CACHE_LINE_MIN_SIZE);

struct flow_index {
	uint32_t *slots; /* 0, or the place of an entry plus one and a tag */
	uint32_t mask;   /* number of slots - 1 */
	struct flow_entry *entries; /* the one before the first matches no key */
	uint32_t most;
	uint32_t begun; /* entries from here on were never used */
	uint32_t freed; /* list of removed entries: the place of the first, plus one */
	uint64_t secrets[2];
};

/* An index of `most` entries; 0 or -ENOMEM. */
int flow_index_create(struct flow_index *index, uint32_t most);
void flow_index_destroy(struct flow_index *index);

static inline uint32_t flow_index_hash(const struct flow_index *index, const struct flow_key *key)
{
	return flow_hash(index->secrets, key);
}

/* The next step reads this. */
static inline void flow_index_prefetch(const struct flow_index *index, uint32_t hash)
{
	rte_prefetch0(&index->slots[hash & index->mask]);
}

/* Whether the tag of a slot is that of a hash. */
static inline bool flow_index_tagged(uint32_t slot, uint32_t hash)
{
	return (slot ^ hash) >> FLOW_INDEX_PLACE_BITS == 0;
}

static inline int32_t flow_index_place(uint32_t slot)
{
	return (int32_t)(slot & ((1u << FLOW_INDEX_PLACE_BITS) - 1)) - 1;
}

/* The place of the entry that probably has the key of this hash; -1 if none has. */
static inline int32_t flow_index_guess(const struct flow_index *index, uint32_t hash)
{
	uint32_t at = hash & index->mask, slot = index->slots[at];

	while (unlikely(!flow_index_tagged(slot, hash) && slot != 0)) {
		at = (at + 1) & index->mask;
		slot = index->slots[at];
	}
	rte_prefetch0(&index->entries[flow_index_place(slot)]);
	return flow_index_place(slot);
}

/* Whether an entry has a key; the one before the first has none. */
static inline bool flow_entry_has(const void *entry, const struct flow_key *key)
{
	uint64_t wanted[2], there[2];

	memcpy(wanted, key, sizeof(wanted));
	memcpy(there, entry, sizeof(there));
	return ((wanted[0] ^ there[0]) | (wanted[1] ^ there[1])) == 0;
}

/* The place of a key, whatever was guessed; -1 if there is none. */
int32_t flow_index_find(const struct flow_index *index, const struct flow_key *key, uint32_t hash);

/* The same, adding an entry if there is none; -1 if all are used. */
int32_t flow_index_add(struct flow_index *index, const struct flow_key *key, uint32_t hash);

/* Remove a used entry. */
void flow_index_remove(struct flow_index *index, uint32_t place);
