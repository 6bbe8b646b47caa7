#pragma once

/* What DPDK's SWX pipeline asks of every port, and ports of the switch have no use for. */

#include <string.h>

#include <rte_mbuf.h>
#include <rte_swx_port.h>

/* A packet as the pipeline takes it. */
static inline void fill_packet(struct rte_mbuf *mbuf, struct rte_swx_pkt *packet)
{
	packet->handle = mbuf;
	packet->pkt = mbuf->buf_addr;
	packet->offset = mbuf->data_off;
	packet->length = mbuf->data_len;
}

/* No program mirrors packets here: the reader knows no session to mirror to. */
static inline void port_no_clone(void *port, struct rte_swx_pkt *packet)
{
	(void)port, (void)packet;
}

static inline void port_no_shortened_clone(void *port, struct rte_swx_pkt *packet, uint32_t length)
{
	(void)port, (void)packet, (void)length;
}

static inline void *port_create(void *port)
{
	return port;
}

static inline void port_destroy(void *port)
{
	(void)port;
}

static inline void port_no_in_stats(void *port, struct rte_swx_port_in_stats *stats)
{
	(void)port;
	memset(stats, 0, sizeof(*stats));
}

static inline void port_no_out_stats(void *port, struct rte_swx_port_out_stats *stats)
{
	(void)port;
	memset(stats, 0, sizeof(*stats));
}
