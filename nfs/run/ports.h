/* Ethernet ports of DPDK: network interfaces by AF_PACKET. */
#pragma once

#include <rte_mbuf.h>

/* Start a port on a network interface; its number, or a negative errno after printing why. */
int port_open(const char *interface, struct rte_mempool *pool);
void port_close(int port);
