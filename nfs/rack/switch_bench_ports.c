#include "rack/switch_bench.h"
#include "rack/switch_port_stubs.h"

static int receive(void *port_pointer, struct rte_swx_pkt *packet)
{
	const struct bench_port *port = port_pointer;
	struct bench *bench = port->bench;
	struct bench_end *end = &bench->ends[port->number];
	struct rte_mbuf *mbuf;

	if (end->entered == end->size || bench->in_flight == bench->options.in_flight)
		return 0;
	mbuf = end->round[end->entered++];
	packet->handle = mbuf;
	packet->pkt = mbuf->buf_addr;
	packet->offset = mbuf->data_off;
	packet->length = mbuf->data_len;
	bench->in_flight++;
	return 1;
}

/* From links behind the first one. */
static int receive_nothing(void *port, struct rte_swx_pkt *packet)
{
	(void)port, (void)packet;
	return 0;
}

static void leave(void *port_pointer, struct rte_swx_pkt *packet)
{
	const struct bench_port *port = port_pointer;
	struct bench *bench = port->bench;

	bench->in_flight--;
	bench->left++;
	bench->left_at = port->number;
	bench->last = *packet;
}

static bool register_ports(struct rte_swx_pipeline *pipeline)
{
	struct rte_swx_port_in_ops in = {port_create, port_destroy, receive, port_no_in_stats};
	struct rte_swx_port_in_ops silent = {port_create, port_destroy, receive_nothing, port_no_in_stats};
	struct rte_swx_port_out_ops out = {
		.create = port_create,
		.free = port_destroy,
		.pkt_tx = leave,
		.pkt_fast_clone_tx = port_no_clone,
		.pkt_clone_tx = port_no_shortened_clone,
		.stats_read = port_no_out_stats,
	};

	return rte_swx_pipeline_port_in_type_register(pipeline, "in", &in) == 0 &&
	       rte_swx_pipeline_port_in_type_register(pipeline, "silent", &silent) == 0 &&
	       rte_swx_pipeline_port_out_type_register(pipeline, "out", &out) == 0;
}

bool bench_make_ports(struct bench *bench, struct rte_swx_pipeline *pipeline)
{
	const uint32_t n = bench->options.links + 1;
	bool good = register_ports(pipeline);

	/* the number of ports in is a power of two */
	for (uint32_t i = 0; good && i < rte_align32pow2(n); i++)
		good = rte_swx_pipeline_port_in_config(pipeline, i,
						       i < RTE_MIN(n, ENDS) ? "in" : "silent",
						       &bench->ports[i]) == 0;
	for (uint32_t i = 0; good && i <= n; i++)
		good = rte_swx_pipeline_port_out_config(pipeline, i, "out", &bench->ports[i]) == 0;
	return good;
}
