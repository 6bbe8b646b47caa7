/* FlowStats: counts packets and bytes of every flow, with aging. All packets pass. */
#include "core/flow_table.h"

enum { UNKNOWN = FLOW_PARAMETERS };
static const struct nf_parameter parameters[] = {
	FLOW_TABLE_PARAMETERS,
	NF_OTHER_PARAMETERS(UNKNOWN, "pass", "pass"),
};

enum { OTHER = FLOW_COUNTERS };
static const struct nf_counter counters[] = {FLOW_TABLE_COUNTERS, NF_OTHER_COUNTERS(OTHER)};

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_table *table = nf->state;
	struct flow_burst burst;
	int32_t places[NF_BURST];

	flow_table_age(table, nf);
	flow_table_read(table, &burst, nf, OTHER, packets, n, out);
	if (likely(burst.n > 0))
		flow_table_count(table, nf, &burst, places, out);
}

NF_KIND("FlowStats", "counts packets and bytes of every flow, with aging",
	.state_bytes = sizeof(struct flow_table), .create = flow_table_make, .process = process,
	.destroy = flow_table_end)
