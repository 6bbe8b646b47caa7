/* A forwarding table like that of a router without a default route, generated from a seed. */
#ifndef NFS_TABLES_ROUTES_H
#define NFS_TABLES_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

struct route {
	uint32_t prefix; /* in host byte order, zeros beyond `depth` bits */
	uint8_t depth;
	uint32_t hop; /* index of the next hop */
};

/* Generator of routes. */
struct routes {
	uint64_t random;
	uint32_t hops;
};

/*
 * Generate the next route. Depths are distributed as in the Internet's table (three of five are
 * /24), with one in fifty longer than /24 as inside a network; prefixes are in unicast address
 * space. Prefixes may repeat.
 */
struct route routes_next(struct routes *routes);

static inline uint32_t route_mask(uint8_t depth)
{
	return depth == 0 ? 0 : ~UINT32_C(0) << (32 - depth);
}

static inline bool route_covers(const struct route *route, uint32_t address)
{
	return (address & route_mask(route->depth)) == route->prefix;
}

#endif
