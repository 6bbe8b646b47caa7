/* Adds routes to a table of rte_fib. */
#pragma once

#include <rte_fib.h>

#include "tables/routes.h"

/*
 * Add the routes of a depth; later ones replace earlier ones of the same prefix. 0, or a negative
 * errno.
 *
 * The caller adds shorter depths first: a prefix that is added after a longer one inside it which
 * ends at the last address would replace the whole table (a bug of DPDK 22.11).
 */
static inline int fib_add_depth(struct rte_fib *table, const struct route *routes, uint32_t n,
				uint8_t depth)
{
	int result = 0;

	for (uint32_t i = 0; i < n && result == 0; i++)
		if (routes[i].depth == depth)
			result = rte_fib_add(table, routes[i].prefix, depth, routes[i].hop);
	return result;
}
