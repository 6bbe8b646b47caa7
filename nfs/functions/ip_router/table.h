/* The forwarding table of IPRouter: maps an address to a next hop or a reason not to forward. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_fib.h>

#include "tables/routes.h"

/* Special next hops, so that one lookup also classifies destinations. */
enum { TO_ITSELF = 0xfffffc, TO_MULTICAST, TO_MARTIAN, NO_ROUTE };

struct router_table {
	const struct route *routes; /* those of a prefix later replace earlier ones */
	uint32_t n;
	bool default_route; /* to hop 0, unless `routes` have one */
	uint32_t own;       /* the router's address, in host byte order */
	int socket;
};

#define ROUTER_TABLE_SPECIAL 8

/* Routes to special hops, added before others; returns how many. */
unsigned int router_table_special(uint32_t own, struct route routes[ROUTER_TABLE_SPECIAL]);
/* The hop of the default route; NO_ROUTE without one. */
uint32_t router_table_default(const struct router_table *of);

/* NULL after printing why. */
struct rte_fib *router_table_create(const struct router_table *of);
