/* An access list like those of firewalls, generated from a seed. */
#ifndef NFS_TABLES_FILTERS_H
#define NFS_TABLES_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

struct prefix {
	uint32_t address; /* in host byte order, zeros beyond `depth` bits */
	uint8_t depth;
};

struct port_range {
	uint16_t low, high;
};

/* Conditions on a packet, and whether it is permitted or denied. */
struct filter {
	struct prefix source, destination;
	struct port_range source_ports, destination_ports;
	uint8_t protocol; /* 0: any */
	bool permit;
};

/*
 * Generate the next filter: from any address or a network of inside hosts (10/8), to a network, a
 * host, or a service of either; three of four permit.
 */
struct filter filters_next(uint64_t *random);

#endif
