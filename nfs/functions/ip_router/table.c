#include "functions/ip_router/table.h"

#include <stdio.h>
#include <string.h>

#include <rte_ip.h>

#include "tables/fib.h"

/* Destinations without a route (RFC 1812, section 5.3.7), and those that are not one host's. */
static const struct route special[] = {
	{RTE_IPV4(0, 0, 0, 0), 8, TO_MARTIAN},
	{RTE_IPV4(127, 0, 0, 0), 8, TO_MARTIAN},
	{RTE_IPV4(169, 254, 0, 0), 16, TO_MARTIAN},
	{RTE_IPV4(224, 0, 0, 0), 4, TO_MULTICAST},
	{RTE_IPV4(240, 0, 0, 0), 4, TO_MARTIAN},
	{RTE_IPV4(255, 255, 255, 255), 32, TO_MULTICAST},
};

_Static_assert(RTE_DIM(special) < ROUTER_TABLE_SPECIAL, "room for the router's address, too");

unsigned int router_table_special(uint32_t own, struct route routes[ROUTER_TABLE_SPECIAL])
{
	routes[0] = (struct route){own, 32, TO_ITSELF};
	memcpy(routes + 1, special, sizeof(special));
	return 1 + RTE_DIM(special);
}

uint32_t router_table_default(const struct router_table *of)
{
	uint32_t hop = of->default_route ? 0 : NO_ROUTE;

	for (uint32_t i = 0; i < of->n; i++)
		if (of->routes[i].depth == 0)
			hop = of->routes[i].hop;
	return hop;
}

/* Special routes first, so that others of the same prefix replace them. */
static int fill(struct rte_fib *table, const struct router_table *of)
{
	const struct route without_prefix = {0, 0, router_table_default(of)};
	struct route special[ROUTER_TABLE_SPECIAL];
	const unsigned int n = router_table_special(of->own, special);
	int result = 0;

	if (without_prefix.hop != NO_ROUTE)
		result = fib_add_depth(table, &without_prefix, 1, 0);
	for (uint8_t depth = 1; depth <= 32 && result == 0; depth++) {
		result = fib_add_depth(table, special, n, depth);
		if (result == 0)
			result = fib_add_depth(table, of->routes, of->n, depth);
	}
	if (result < 0)
		fprintf(stderr, "IPRouter: cannot add %u routes: %d\n", of->n, result);
	return result;
}

/* Most groups of 256 addresses that prefixes longer than /24 need, each one at worst. */
static uint32_t groups(const struct router_table *of)
{
	uint32_t n = 256; /* for the special ones */

	for (uint32_t i = 0; i < of->n; i++)
		n += of->routes[i].depth > 24;
	return n;
}

struct rte_fib *router_table_create(const struct router_table *of)
{
	static unsigned int packet_spec;
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = NO_ROUTE,
		.max_routes = (int)of->n + 8,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = groups(of)},
	};
	char name[32];
	struct rte_fib *table;

	snprintf(name, sizeof(name), "ip_router_%u",
		 __atomic_fetch_add(&packet_spec, 1, __ATOMIC_RELAXED));
	table = rte_fib_create(name, of->socket, &conf);
	if (!table) {
		fprintf(stderr, "IPRouter: no memory for a table of %u routes\n", of->n);
		return NULL;
	}
	if (fill(table, of) == 0)
		return table;
	rte_fib_free(table);
	return NULL;
}
