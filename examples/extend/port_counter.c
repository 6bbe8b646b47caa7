/*
 * PortCounter: counts packets to one UDP or TCP port. All packets pass, except malformed ones.
 *
 * A complete network function to copy from: `cp examples/extend/port_counter.c nfs/functions/`, then
 * `make nfs`. No other file needs an edit.
 */
#include "core/nf.h"
#include "core/packet.h"

enum { PORT };
static const struct nf_parameter parameters[] = {
	[PORT] = {"port", "destination port to count", 0, 65535, 53},
};

enum { MATCHED, OTHER, MALFORMED };
static const struct nf_counter counters[] = {
	[MATCHED] = {"matched", "packets to the port"},
	[OTHER] = {"other", "all other packets"},
	[MALFORMED] = {"malformed", "packets freed"},
};

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const rte_be16_t port = rte_cpu_to_be_16((uint16_t)nf->settings[PORT]);

	for (uint16_t i = 0; i < n; i++) {
		const struct packet headers = packet_parse(packets[i]);
		const rte_be16_t *ports;

		if (headers.type == PACKET_MALFORMED) {
			nf->counters[MALFORMED]++;
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		/* NULL without UDP or TCP ports; ports[1] is the destination */
		ports = headers.type == PACKET_IPV4 ? packet_ports(packets[i], &headers) : NULL;
		nf->counters[ports && ports[1] == port ? MATCHED : OTHER]++;
		nf_send(out, packets[i]);
	}
}

static struct nf_kind kind = {
	.name = "PortCounter",
	.help = "counts packets to one UDP or TCP port",
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.counters = counters,
	.n_counters = RTE_DIM(counters),
	.process = process,
};

NF_REGISTER(kind)
