/* Random tables of routes, and the longest prefix match by a search through all of them. */
#pragma once

#include "core/ipv4.h"
#include "core/random.h"
#include "tables/routes.h"
#include "tests/files.h"

#define RANDOM_ROUTES 40
#define RANDOM_HOPS 62

/* The next hop by a linear search through the routes; -1 without a route. */
static inline int hop_by_search(const struct route *routes, uint32_t n, uint32_t address)
{
	int hop = -1, depth = -1;

	for (uint32_t i = 0; i < n; i++)
		if (routes[i].depth >= depth && route_covers(&routes[i], address)) {
			depth = routes[i].depth;
			hop = (int)routes[i].hop;
		}
	return hop;
}

/* An address, often the first or last one of a prefix of any length. */
static inline uint32_t random_edge(uint64_t *random)
{
	const uint32_t address = (uint32_t)(random_next(random) >> 32);
	const uint32_t inside = ~route_mask((uint8_t)random_below(random, 33));

	switch (random_below(random, 4)) {
	case 0:
		return address & ~inside;
	case 1:
		return address | inside;
	case 2:
		return ~inside;
	default:
		return address;
	}
}

/* Whether routers may forward to a prefix: no special one covers it. */
static inline bool is_routed_prefix(const struct route *route)
{
	const struct route link_local = {RTE_IPV4(169, 254, 0, 0), 16, 0};

	if (route->depth >= 16 && route_covers(&link_local, route->prefix))
		return false;
	return route->depth < 4 || (route->depth < 8 && route->prefix >> 28 < 14) ||
	       ipv4_is_host(rte_cpu_to_be_32(route->prefix));
}

static inline bool has_prefix(const struct route *routes, uint32_t n, const struct route *route)
{
	for (uint32_t i = 0; i < n; i++)
		if (routes[i].depth == route->depth && routes[i].prefix == route->prefix)
			return true;
	return false;
}

/* Write a random table with prefixes of lengths 0 to 32 into a file; returns how many. */
static inline uint32_t random_routes_write(const char *path, uint64_t *random,
					   struct route routes[RANDOM_ROUTES])
{
	const uint32_t wanted = 1 + random_below(random, RANDOM_ROUTES);
	FILE *file = fopen(path, "w");
	uint32_t n = 0;

	assert_non_null(file);
	while (n < wanted) {
		struct route route = {.prefix = random_edge(random),
				      .depth = (uint8_t)random_below(random, 33),
				      .hop = random_below(random, RANDOM_HOPS)};

		if (random_below(random, 2))
			route.depth &= 3; /* prefixes that end at the last address */
		route.prefix &= route_mask(route.depth);
		if (!is_routed_prefix(&route) || has_prefix(routes, n, &route))
			continue;
		fprintf(file, "%u.%u.%u.%u/%u %u\n", route.prefix >> 24, route.prefix >> 16 & 255,
			route.prefix >> 8 & 255, route.prefix & 255, route.depth, route.hop);
		routes[n++] = route;
	}
	assert_int_equal(fclose(file), 0);
	return n;
}

/* A destination near the edges of a table's prefixes. */
static inline uint32_t random_destination(uint64_t *random, const struct route *routes, uint32_t n)
{
	const struct route *near = &routes[random_below(random, n)];

	if (random_below(random, 3) == 0)
		return random_edge(random);
	return (near->prefix | (random_below(random, 2) ? ~route_mask(near->depth) : 0)) +
	       random_below(random, 3) - 1;
}
