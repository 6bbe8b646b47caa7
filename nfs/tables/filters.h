/* An access list: generated from a seed, like those of firewalls, or read from a file. */
#pragma once

#include "tables/table_file.h"

#define FILTERS_MOST 100000 /* in a file */

struct port_range {
	uint16_t low, high;
};

/* Whether a filter is of both families, or of one. */
enum filter_family { FILTER_BOTH, FILTER_IPV4, FILTER_IPV6 };

/* Conditions on a packet, and whether it is permitted or denied. */
struct filter {
	enum filter_family family;
	struct prefix source, destination;                /* unless it is of IPv6 */
	struct prefix_ipv6 source_ipv6, destination_ipv6; /* unless it is of IPv4 */
	struct port_range source_ports, destination_ports;
	uint8_t protocol; /* 0: any */
	bool permit;
};

/*
 * Generate the next filter: from any address or a network of inside hosts (10/8), to a network, a
 * host, or a service of either; three of four permit.
 */
struct filter filters_next(uint64_t *random);

/*
 * `n` generated filters, or those of a file; in memory that the caller frees. NULL after printing
 * why. A line of a file is
 *
 *     permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS]
 *
 * PROTOCOL is tcp, udp, icmp, icmp6, a number, or any one: ip of both families, ipv4 or ipv6 of
 * one. SOURCE and DESTINATION are an address, a prefix (10.0.0.0/8, 2001:db8::/32) or any, of one
 * family; PORTS, of tcp and udp only, a port or a range (1024-65535), any without.
 */
struct filter *filters_generate(const char *of, uint32_t n, uint64_t seed);
struct filter *filters_read(const char *of, const char *path, uint32_t *n);
