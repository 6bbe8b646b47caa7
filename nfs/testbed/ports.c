#include "testbed/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>
#include <rte_pci.h>

#define LAST_DEVICE 31
#define LAST_FUNCTION 7
#define POOL_PACKETS 4095
#define DESCRIPTORS 512

/* The address in front of the devargs. */
static bool parse_address(const char *given, struct rte_pci_addr *address)
{
	char text[PCI_PRI_STR_SIZE];
	const size_t length = strcspn(given, ",");

	if (length >= sizeof(text))
		return false;
	memcpy(text, given, length);
	text[length] = '\0';
	return rte_pci_addr_parse(text, address) == 0 && address->devid <= LAST_DEVICE &&
	       address->function <= LAST_FUNCTION;
}

/* Devargs are "key=value" separated by commas; an address needs none. */
static bool are_devargs(const char *given)
{
	const char *devargs = strchr(given, ',');
	struct rte_kvargs *parsed = devargs ? rte_kvargs_parse(devargs + 1, NULL) : NULL;
	bool valid = !devargs || (parsed && parsed->count > 0);

	for (unsigned int i = 0; parsed && i < parsed->count; i++)
		valid = valid && parsed->pairs[i].key[0] && parsed->pairs[i].value &&
			parsed->pairs[i].value[0];
	rte_kvargs_free(parsed);
	return valid;
}

bool ports_add(struct ports *ports, const char *given, char *why, size_t size)
{
	struct rte_pci_addr address;

	if (!parse_address(given, &address))
		snprintf(why, size, "%s is not a PCI address, such as 0000:03:00.0", given);
	else if (!are_devargs(given))
		snprintf(why, size, "%s: devargs are key=value, separated by commas", given);
	else if (ports->n == PORTS)
		snprintf(why, size, "%s is one too many, a card has an inside and an outside port",
			 given);
	else {
		ports->given[ports->n++] = given;
		return true;
	}
	return false;
}

bool ports_complete(const struct ports *ports, char *why, size_t size)
{
	struct rte_pci_addr inside, outside;

	if (ports->n == 0)
		return true;
	if (ports->n < PORTS) {
		snprintf(why, size, "%s is only the inside port, the outside port is missing",
			 ports->given[0]);
		return false;
	}
	if (parse_address(ports->given[0], &inside) && parse_address(ports->given[1], &outside) &&
	    rte_pci_addr_cmp(&inside, &outside) < 0)
		return true;
	snprintf(why, size,
		 "%s, the inside port, must have a lower address than %s: DPDK numbers ports by "
		 "address",
		 ports->given[0], ports->given[1]);
	return false;
}

static int start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf config = {0};
	const int socket = rte_eth_dev_socket_id(port);
	int result = rte_eth_dev_configure(port, 1, 1, &config);

	if (result == 0)
		result = rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, (unsigned int)socket, NULL,
						pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, (unsigned int)socket, NULL);
	if (result == 0)
		result = rte_eth_dev_start(port);
	if (result < 0)
		fprintf(stderr, "testbed: cannot start port %u: %s\n", port, strerror(-result));
	return result;
}

int ports_start(const struct ports *ports)
{
	const unsigned int found = rte_eth_dev_count_avail();
	struct rte_mempool *pool;
	int result = 0;

	if (ports->n == 0)
		return 0;
	if (found < ports->n) {
		fprintf(stderr,
			"testbed: DPDK found %u of the %u ports of --port: does a card have these "
			"addresses, and are there hugepages?\n",
			found, ports->n);
		return -ENODEV;
	}
	pool = rte_pktmbuf_pool_create("ports", POOL_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool) {
		fprintf(stderr, "testbed: no memory for the packets of the ports: %s\n",
			rte_strerror(rte_errno));
		return -ENOMEM;
	}
	for (uint16_t port = 0; port < ports->n && result == 0; port++)
		result = start(port, pool);
	return result;
}

void ports_stop(const struct ports *ports)
{
	for (uint16_t port = 0; port < ports->n; port++)
		if (rte_eth_dev_is_valid_port(port))
			rte_eth_dev_stop(port);
}
