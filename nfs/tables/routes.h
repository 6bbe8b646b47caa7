/*
 * A forwarding table: generated from a seed, like that of a router without a default route, or read
 * from a file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ROUTES_MOST 4000000 /* in a file */

struct route {
	uint32_t prefix; /* in host byte order, zeros beyond `depth` bits */
	uint8_t depth;
	uint32_t hop;    /* index of the next hop */
	uint32_t number; /* among the routes of its file, from 1; 0 if generated */
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

/* `n` generated routes, in memory that the caller frees; NULL after printing why. */
struct route *routes_generate(const char *of, uint32_t n, uint64_t seed, uint32_t hops);

struct routes_limits {
	const char *of; /* whose routes, for messages */
	uint32_t hops;  /* next hops, from 0 on */
	uint32_t own;   /* the router's address, to which there is no route */
};

/*
 * The routes of a file, in the order of their prefixes, shorter ones first; in memory that the
 * caller frees. NULL after printing why. A line is
 *
 *     PREFIX/LENGTH HOP
 *
 * HOP is the number of a next hop. No prefix may have two routes, or be one to which routers do not
 * forward. 0.0.0.0/0 is the default route.
 */
struct route *routes_read(const char *path, const struct routes_limits *limits, uint32_t *n);

static inline uint32_t route_mask(uint8_t depth)
{
	return depth == 0 ? 0 : ~UINT32_C(0) << (32 - depth);
}

static inline bool route_covers(const struct route *route, uint32_t address)
{
	return (address & route_mask(route->depth)) == route->prefix;
}
