/* FlowStats: counts packets and bytes of every flow, with aging. All packets pass. */
#include <errno.h>

#include "core/flow_table.h"
#include "core/memory.h"

static const struct nf_parameter parameters[] = {FLOW_TABLE_PARAMETERS};

enum { OTHER = FLOW_COUNTERS, MALFORMED };
static const struct nf_counter counters[] = {
	FLOW_TABLE_COUNTERS,
	[OTHER] = {"other", "packets that are not IPv4, sent on as they are"},
	[MALFORMED] = {"malformed", "packets freed"},
};

static int create(struct nf *nf)
{
	struct flow_table *table = nf_zalloc_for(nf->kind->name, sizeof(*table));
	int error = table ? flow_table_create(table, nf) : -ENOMEM;

	if (error < 0)
		nf_free(table);
	else
		nf->state = table;
	return error;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_table *table = nf->state;
	struct flow_burst burst;
	int32_t places[NF_BURST];

	flow_table_age(table, nf);
	flow_table_read(table, &burst, packets, n, out);
	nf->counters[OTHER] += burst.other;
	nf->counters[MALFORMED] += burst.malformed;
	if (likely(burst.n > 0))
		flow_table_count(table, nf, &burst, places, out);
}

static void destroy(struct nf *nf)
{
	flow_table_destroy(nf->state);
	nf_free(nf->state);
}

static struct nf_kind kind = {
	.name = "FlowStats",
	.help = "counts packets and bytes of every flow, with aging",
	NF_PARAMETERS(parameters),
	NF_COUNTERS(counters),
	.create = create,
	.process = process,
	.destroy = destroy,
};

NF_REGISTER(kind)
