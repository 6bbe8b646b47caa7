#include "functions/flow_offload/software.h"

#include <stdio.h>

#include "core/flow_index.h"
#include "core/memory.h"
#include "core/nf.h"

void *software_create(uint32_t connections, int socket)
{
	struct flow_index *index = nf_zalloc(sizeof(*index));

	(void)socket;
	if (index && flow_index_create(index, connections) == 0)
		return index;
	nf_free(index);
	fprintf(stderr, "software: no memory for a table of %u connections\n", connections);
	return NULL;
}

uint32_t software_places(const void *state)
{
	return ((const struct flow_index *)state)->most;
}

void software_lookup(void *state, const struct flow_key *keys, uint16_t n, int32_t *places)
{
	const struct flow_index index = *(const struct flow_index *)state; /* stays in registers */
	uint32_t hashes[NF_BURST];

	for (uint16_t i = 0; i < n; i++) {
		hashes[i] = flow_index_hash(&index, &keys[i]);
		flow_index_prefetch(&index, hashes[i]);
	}
	for (uint16_t i = 0; i < n; i++)
		places[i] = flow_index_guess(&index, hashes[i]);
	for (uint16_t i = 0; i < n; i++)
		if (unlikely(!flow_entry_has(&index.entries[places[i]], &keys[i])))
			places[i] = flow_index_find(&index, &keys[i], hashes[i]);
}

int32_t software_insert(void *state, const struct flow_key *key)
{
	return flow_index_add(state, key, flow_index_hash(state, key));
}

struct flow_key software_key(const void *state, uint32_t place)
{
	return ((const struct flow_index *)state)->entries[place].key;
}

void software_remove(void *state, uint32_t place)
{
	flow_index_remove(state, place);
}

void software_destroy(void *state)
{
	flow_index_destroy(state);
	nf_free(state);
}

static struct flow_offload_backend software = {
	.name = "software",
	.help = "an index of flows; the cores process all packets",
	.preference = 0,
	.create = software_create,
	.places = software_places,
	.lookup = software_lookup,
	.insert = software_insert,
	.remove = software_remove,
	.destroy = software_destroy,
};

FLOW_OFFLOAD_REGISTER(software)
