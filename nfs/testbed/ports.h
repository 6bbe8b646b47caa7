/*
 * Ports of a card, through which it forwards connections by itself (DOCA Flow). Network functions
 * receive generated packets all the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PORTS 2 /* inside, outside */

/* As given: a PCI address, and perhaps devargs: "0000:03:00.0,dv_flow_en=2". */
struct ports {
	unsigned int n;
	const char *given[PORTS];
};

/* Add a port. False if it is invalid, or one too many; `why` then says so. */
bool ports_add(struct ports *ports, const char *given, char *why, size_t size);

/* Whether the ports are none, or all that a card needs in the right order; else `why` says so. */
bool ports_complete(const struct ports *ports, char *why, size_t size);

/*
 * Configure and start the ports that EAL found, with one queue in each direction. 0, or a negative
 * errno after printing why.
 */
int ports_start(const struct ports *ports);
void ports_stop(const struct ports *ports);
