#include "core/flow_index.h"

#include <errno.h>

#include "core/memory.h"

#define LEAST_SLOTS 16

/* No key of a packet is this. */
static const struct flow_key no_key = {.family = 0xff};

int flow_index_create(struct flow_index *index, uint32_t most)
{
	const uint32_t n = RTE_MAX(rte_align32pow2(2 * most), LEAST_SLOTS);

	*index = (struct flow_index){
		.slots = nf_zalloc(n * sizeof(*index->slots)),
		.mask = n - 1,
		.entries = nf_zalloc((most + 1) * sizeof(*index->entries)),
		.most = most,
	};
	draw_secrets(index->secrets, RTE_DIM(index->secrets));
	if (!index->slots || !index->entries) {
		nf_free(index->slots);
		nf_free(index->entries);
		*index = (struct flow_index){.slots = NULL};
		return -ENOMEM;
	}
	index->entries++;
	index->entries[-1].key = no_key;
	return 0;
}

void flow_index_destroy(struct flow_index *index)
{
	nf_free(index->slots);
	if (index->entries)
		nf_free(index->entries - 1);
}

static uint32_t slot_of(uint32_t place, uint32_t hash)
{
	return (hash >> FLOW_INDEX_PLACE_BITS << FLOW_INDEX_PLACE_BITS) | (place + 1);
}

/* The position of the slot of a key, or of the free one that ends its search. */
static uint32_t search(const struct flow_index *index, const struct flow_key *key, uint32_t hash)
{
	uint32_t at = hash & index->mask;

	for (; index->slots[at] != 0; at = (at + 1) & index->mask)
		if (flow_index_tagged(index->slots[at], hash) &&
		    flow_entry_has(&index->entries[flow_index_place(index->slots[at])], key))
			break;
	return at;
}

int32_t flow_index_find(const struct flow_index *index, const struct flow_key *key, uint32_t hash)
{
	return flow_index_place(index->slots[search(index, key, hash)]);
}

/* An unused entry; -1 if there is none. */
static int32_t take(struct flow_index *index)
{
	uint32_t place;

	if (index->freed) {
		place = index->freed - 1;
		index->freed = index->entries[place].key.source;
	} else if (index->begun < index->most) {
		place = index->begun++;
	} else {
		return -1;
	}
	return (int32_t)place;
}

int32_t flow_index_add(struct flow_index *index, const struct flow_key *key, uint32_t hash)
{
	const uint32_t at = search(index, key, hash);
	int32_t place = flow_index_place(index->slots[at]);

	if (place >= 0)
		return place;
	place = take(index);
	if (place < 0)
		return place;
	index->entries[place].key = *key;
	index->slots[at] = slot_of((uint32_t)place, hash);
	return place;
}

/* Free a slot (Knuth, The Art of Computer Programming, volume 3, algorithm 6.4R). */
static void free_slot(struct flow_index *index, uint32_t hole)
{
	const uint32_t mask = index->mask;
	uint32_t at = hole;

	for (;;) {
		uint32_t home;

		at = (at + 1) & mask;
		if (index->slots[at] == 0)
			break;
		home = flow_index_hash(index,
				       &index->entries[flow_index_place(index->slots[at])].key);
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			index->slots[hole] = index->slots[at];
			hole = at;
		}
	}
	index->slots[hole] = 0;
}

void flow_index_remove(struct flow_index *index, uint32_t place)
{
	struct flow_entry *entry = &index->entries[place];
	uint32_t at = flow_index_hash(index, &entry->key) & index->mask;

	while (flow_index_place(index->slots[at]) != (int32_t)place)
		at = (at + 1) & index->mask;
	free_slot(index, at);
	memset(entry->data, 0, sizeof(entry->data));
	entry->key = no_key;
	entry->key.source = index->freed; /* the list's next entry */
	index->freed = place + 1;
}
