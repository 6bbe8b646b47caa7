#include "functions/flow_offload/software.h"

#include <stdio.h>

#include <rte_hash.h>

#include "core/packet.h"

void *software_create(uint32_t connections, int socket)
{
	static unsigned int packet_spec;
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = connections,
		.key_len = sizeof(struct flow_key),
		.hash_func = flow_hash_of,
		.socket_id = socket,
	};
	struct rte_hash *table;

	snprintf(name, sizeof(name), "connections_%u",
		 __atomic_fetch_add(&packet_spec, 1, __ATOMIC_RELAXED));
	table = rte_hash_create(&parameters);
	if (!table)
		fprintf(stderr, "software: no memory for a table of %u connections\n", connections);
	return table;
}

uint32_t software_places(const void *state)
{
	return (uint32_t)rte_hash_max_key_id(state) + 1;
}

void software_lookup(void *state, const void **keys, uint16_t n, int32_t *places)
{
	rte_hash_lookup_bulk(state, keys, n, places);
}

int32_t software_insert(void *state, const struct flow_key *key)
{
	return rte_hash_add_key(state, key);
}

struct flow_key software_key(const void *state, uint32_t place)
{
	const struct flow_key none = {0};
	void *key;

	if (rte_hash_get_key_with_position(state, (int32_t)place, &key) != 0)
		return none;
	return *(const struct flow_key *)key;
}

void software_remove(void *state, uint32_t place)
{
	const struct flow_key key = software_key(state, place);

	rte_hash_del_key(state, &key);
}

void software_destroy(void *state)
{
	rte_hash_free(state);
}

static struct flow_offload_backend software = {
	.name = "software",
	.help = "rte_hash; the cores process all packets",
	.preference = 0,
	.create = software_create,
	.places = software_places,
	.lookup = software_lookup,
	.insert = software_insert,
	.remove = software_remove,
	.destroy = software_destroy,
};

FLOW_OFFLOAD_REGISTER(software)
