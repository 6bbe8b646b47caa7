#include "run/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <net/if.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#define DESCRIPTORS 256
#define MOST_PORTS 4

static struct {
	char interface[IF_NAMESIZE];
	unsigned int users;
	uint16_t port;
} ports[MOST_PORTS];

static void device_name(unsigned int at, char *name, size_t size)
{
	snprintf(name, size, "net_af_packet%u", at);
}

static int start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = {0};
	int result = rte_eth_dev_configure(port, 1, 1, &conf);

	if (result == 0)
		result = rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	if (result == 0)
		result = rte_eth_dev_start(port);
	if (result == 0)
		result = rte_eth_promiscuous_enable(port);
	return result;
}

int port_open(const char *interface, struct rte_mempool *pool)
{
	char name[32], arguments[64];
	unsigned int at = 0;
	int result;

	while (at < MOST_PORTS && ports[at].users && strcmp(ports[at].interface, interface) != 0)
		at++;
	if (at < MOST_PORTS && ports[at].users) {
		ports[at].users++;
		return ports[at].port;
	}
	if (at == MOST_PORTS || strlen(interface) >= IF_NAMESIZE ||
	    if_nametoindex(interface) == 0) {
		fprintf(stderr, "af_packet:%s: no such network interface\n", interface);
		return -ENODEV;
	}
	device_name(at, name, sizeof(name));
	snprintf(arguments, sizeof(arguments), "iface=%s", interface);
	result = rte_eal_hotplug_add("vdev", name, arguments);
	if (result == 0)
		result = rte_eth_dev_get_port_by_name(name, &ports[at].port);
	if (result == 0)
		result = start(ports[at].port, pool);
	if (result < 0) {
		fprintf(stderr, "af_packet:%s: %s\nhint: it needs the privilege CAP_NET_RAW\n",
			interface, strerror(-result));
		return result;
	}
	strcpy(ports[at].interface, interface);
	ports[at].users = 1;
	return ports[at].port;
}

void port_close(int port)
{
	char name[32];

	for (unsigned int at = 0; at < MOST_PORTS; at++) {
		if (ports[at].users == 0 || ports[at].port != port || --ports[at].users > 0)
			continue;
		rte_eth_dev_stop(ports[at].port);
		rte_eth_dev_close(ports[at].port);
		device_name(at, name, sizeof(name));
		rte_eal_hotplug_remove("vdev", name);
	}
}
