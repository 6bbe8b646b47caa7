#include "core/flow_table.h"

#include <errno.h>
#include <stdio.h>

#include <rte_hash_crc.h>

#include "core/memory.h"

int flow_table_create(struct flow_table *table, const struct nf *nf, bool marks)
{
	static unsigned int packet_spec;
	char name[RTE_HASH_NAMESIZE];
	uint32_t n = 0;
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = (uint32_t)nf->settings[FLOW_MOST],
		.key_len = sizeof(struct flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = nf->socket,
	};

	snprintf(name, sizeof(name), "flows_%u",
		 __atomic_fetch_add(&packet_spec, 1, __ATOMIC_RELAXED));
	*table = (struct flow_table){
		.timeout_us = (uint64_t)(nf->settings[FLOW_TIMEOUT_S] * 1e6),
		.places = rte_hash_create(&parameters),
	};
	if (table->places) {
		n = (uint32_t)rte_hash_max_key_id(table->places) + 1;
		table->sweep = sweep_of(n, table->timeout_us);
		table->flows = nf_zalloc(n * sizeof(*table->flows));
	}
	if (table->flows && marks)
		table->marks = nf_zalloc(n * sizeof(*table->marks));
	if (!table->flows || (marks && !table->marks)) {
		fprintf(stderr, "%s: no memory for a table of %u flows\n", nf->kind->name,
			parameters.entries);
		flow_table_destroy(table);
		return -ENOMEM;
	}
	return 0;
}

void flow_table_destroy(struct flow_table *table)
{
	rte_hash_free(table->places);
	nf_free(table->flows);
	nf_free(table->marks);
}

static void begin_flow(struct flow_table *table, struct nf *nf, int32_t place)
{
	table->flows[place] = (struct flow){0};
	if (table->marks)
		table->marks[place] = 0;
	nf->counters[FLOW_STARTED]++;
}

int32_t flow_table_start(struct flow_table *table, struct nf *nf, const struct flow_key *key)
{
	const int32_t place = rte_hash_add_key(table->places, key);

	if (place < 0)
		return place;
	/* an earlier packet of the burst may have added it */
	if (table->flows[place].last_us == 0)
		begin_flow(table, nf, place);
	return place;
}

void flow_table_restart(struct flow_table *table, struct nf *nf, int32_t place)
{
	nf->counters[FLOW_AGED]++;
	begin_flow(table, nf, place);
}

static void remove_flow(struct flow_table *table, struct nf *nf, uint32_t place)
{
	void *key;

	if (rte_hash_get_key_with_position(table->places, (int32_t)place, &key) == 0)
		rte_hash_del_key(table->places, key);
	table->flows[place].last_us = 0;
	nf->counters[FLOW_AGED]++;
}

void flow_table_remove_old(struct flow_table *table, struct nf *nf, uint32_t entries)
{
	const uint64_t now_us = nf->now_us;

	for (; entries > 0; entries--) {
		const uint32_t place = sweep_next(&table->sweep);
		const uint64_t last_us = table->flows[place].last_us;

		if (unlikely(last_us && now_us - last_us >= table->timeout_us))
			remove_flow(table, nf, place);
	}
}
