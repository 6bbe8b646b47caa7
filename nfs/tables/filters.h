/* An access list like those of firewalls, made from a seed. */
#ifndef NFS_TABLES_FILTERS_H
#define NFS_TABLES_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

struct prefix {
	uint32_t address; /* in host order, zeros behind `depth` bits */
	uint8_t depth;
};

struct port_range {
	uint16_t low, high;
};

/* What a packet must be to be permitted or denied. */
struct filter {
	struct prefix source, destination;
	struct port_range source_ports, destination_ports;
	uint8_t protocol; /* 0: any */
	bool permit;
};

/*
 * The next filter: from anybody or a network of hosts inside (10/8), to a network, or a host, or a
 * service of either; three of four permit.
 */
struct filter filters_next(uint64_t *random);

#endif
