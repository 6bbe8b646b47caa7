/*
 * Null: passes all packets. Its throughput is that of the traffic's source and of the loop around a
 * function, which every other measurement includes.
 */
#include "core/nf.h"

enum { PASSED };
static const struct nf_counter counters[] = {
	[PASSED] = {"passed", "packets sent on"},
};

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	nf_send_bulk(out, packets, n);
	nf->counters[PASSED] += n;
}

static struct nf_kind kind = {
	.name = "Null",
	.help = "passes all packets: the cost of traffic and loop alone",
	.counters = counters,
	.n_counters = RTE_DIM(counters),
	.process = process,
};

NF_REGISTER(kind)
