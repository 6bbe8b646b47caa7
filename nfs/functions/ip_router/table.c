#include "functions/ip_router/table.h"

#include <stdio.h>
#include <string.h>

#include <rte_ip.h>

static int add_route(struct rte_fib *table, uint32_t prefix, uint8_t depth, uint32_t hop)
{
	int result = rte_fib_add(table, prefix, depth, hop);

	if (result < 0)
		fprintf(stderr, "IPRouter: cannot add route %08x/%u: %d\n", prefix, depth, result);
	return result;
}

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

static int add_special(struct rte_fib *table, uint32_t own)
{
	struct route routes[ROUTER_TABLE_SPECIAL];
	const unsigned int n = router_table_special(own, routes);
	int result = 0;

	for (unsigned int i = 0; i < n && result == 0; i++)
		result = add_route(table, routes[i].prefix, routes[i].depth, routes[i].hop);
	return result;
}

static bool is_default(const struct route *route)
{
	return route->depth == 0;
}

uint32_t router_table_default(const struct router_table *of)
{
	uint32_t hop = of->default_route ? 0 : NO_ROUTE;

	for (uint32_t i = 0; i < of->n; i++)
		if (is_default(&of->routes[i]))
			hop = of->routes[i].hop;
	return hop;
}

static int fill(struct rte_fib *table, const struct router_table *of)
{
	const uint32_t hop = router_table_default(of);
	int result = 0;

	/* added first: later it would replace longer prefixes (a bug of DPDK 22.11) */
	if (hop != NO_ROUTE)
		result = add_route(table, 0, 0, hop);
	if (result == 0)
		result = add_special(table, of->own);
	for (uint32_t i = 0; i < of->n && result == 0; i++) {
		const struct route *route = &of->routes[i];

		if (!is_default(route))
			result = add_route(table, route->prefix, route->depth, route->hop);
	}
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
