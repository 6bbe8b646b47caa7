/* The forwarding table of IPRouter: from an address to a next hop, or to what is not one. */
#ifndef NFS_FUNCTIONS_IP_ROUTER_TABLE_H
#define NFS_FUNCTIONS_IP_ROUTER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_fib.h>

/* Where the table sends what is not forwarded: destinations are told by the one lookup. */
enum { TO_ITSELF = 0xfffffc, TO_MULTICAST, TO_MARTIAN, NO_ROUTE };

struct router_table {
	uint32_t routes, seed, hops;
	bool default_route; /* to hop 0 */
	uint32_t own;       /* the router's address, in host order */
	int socket;
};

/* A table with so many routes; NULL after printing why. */
struct rte_fib *router_table_create(const struct router_table *of);

#endif
