#include "core/flow_table.h"

#include <errno.h>
#include <stdio.h>

#include "core/memory.h"

_Static_assert(sizeof(struct flow) == sizeof(struct flow_entry), "a flow is an entry");

int flow_table_create(struct flow_table *table, const struct nf *nf)
{
	const uint32_t most = (uint32_t)nf->settings[FLOW_MOST];
	const uint64_t timeout_us = (uint64_t)(nf->settings[FLOW_TIMEOUT_S] * 1e6);

	*table = (struct flow_table){.timeout_us = timeout_us, .sweep = sweep_of(most, timeout_us)};
	if (flow_index_create(&table->index, most) == 0)
		return 0;
	fprintf(stderr, "%s: no memory for a table of %u flows\n", nf->kind->name, most);
	return -ENOMEM;
}

void flow_table_destroy(struct flow_table *table)
{
	flow_index_destroy(&table->index);
}

int flow_table_make(struct nf *nf)
{
	return flow_table_create(nf->state, nf);
}

void flow_table_end(struct nf *nf)
{
	flow_table_destroy(nf->state);
}

int32_t flow_table_start(struct flow_table *table, struct nf *nf, const struct flow_key *key,
			 uint32_t hash)
{
	const int32_t place = flow_index_add(&table->index, key, hash);

	if (place < 0)
		return place;
	/* an earlier packet of the burst may have added it, or the guess was wrong */
	if (flow_table_at(table, place)->last_us == 0)
		nf->counters[FLOW_STARTED]++;
	else if (nf->now_us - flow_table_at(table, place)->last_us >= table->timeout_us)
		flow_table_restart(table, nf, place);
	return place;
}

void flow_table_begin_ipv6(const struct flow_table *table, struct flow_burst *burst)
{
	for (uint16_t i = 0; i < burst->n_ipv6; i++) {
		const struct packet *headers = &burst->ipv6_headers[i];

		burst->l3[burst->n] = headers->l3;
		flow_burst_add(burst, burst->ipv6[i], packet_flow_ipv6(burst->ipv6[i], headers));
		flow_table_begin(&table->index, burst, burst->n - 1);
	}
}

void flow_table_restart(struct flow_table *table, struct nf *nf, int32_t place)
{
	struct flow *flow = flow_table_at(table, place);

	*flow = (struct flow){.key = flow->key};
	nf->counters[FLOW_AGED]++;
	nf->counters[FLOW_STARTED]++;
}

void flow_table_remove_old(struct flow_table *table, struct nf *nf, uint32_t entries)
{
	const uint64_t now_us = nf->now_us;

	for (; entries > 0; entries--) {
		const uint32_t place = sweep_next(&table->sweep);
		uint64_t last_us;

		if (place >= table->index.begun) /* never used: its memory stays untouched */
			continue;
		last_us = flow_table_at(table, (int32_t)place)->last_us;
		if (unlikely(last_us && now_us - last_us >= table->timeout_us)) {
			flow_index_remove(&table->index, place);
			nf->counters[FLOW_AGED]++;
		}
	}
}
