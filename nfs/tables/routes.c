#include "tables/routes.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/random.h"

/* Routes per depth of 10,000, close to the shares in public BGP tables. */
static const uint16_t shares[33] = {
	[8] = 1,    [10] = 1,    [11] = 2,    [12] = 4,    [13] = 7,   [14] = 12,
	[15] = 20,  [16] = 140,  [17] = 80,   [18] = 140,  [19] = 250, [20] = 430,
	[21] = 520, [22] = 1110, [23] = 1000, [24] = 6083, [25] = 30,  [26] = 40,
	[27] = 30,  [28] = 30,   [29] = 30,   [30] = 20,   [32] = 20,
};

static uint8_t a_depth(uint64_t *random)
{
	uint32_t ahead = random_below(random, 10000);
	uint8_t depth = 0;

	while (depth < 32 && ahead >= shares[depth])
		ahead -= shares[depth++];
	return depth;
}

struct route routes_next(struct routes *routes)
{
	const uint8_t depth = a_depth(&routes->random);
	uint32_t first = 1 + random_below(&routes->random, 222);
	uint32_t rest = (uint32_t)random_next(&routes->random) >> 8;

	if (first >= 127) /* loopback */
		first++;
	if (first == 169 && rest >> 16 == 254) /* link-local */
		rest ^= 1u << 16;
	return (struct route){
		.prefix = (first << 24 | rest) & route_mask(depth),
		.depth = depth,
		.hop = random_below(&routes->random, routes->hops),
	};
}

struct route *routes_generate(const char *of, uint32_t n, uint64_t seed, uint32_t hops)
{
	struct routes source = {.random = seed, .hops = hops};
	struct route *routes = calloc(n + 1, sizeof(*routes));

	if (!routes)
		fprintf(stderr, "%s: no memory for %u routes\n", of, n);
	for (uint32_t i = 0; routes && i < n; i++)
		routes[i] = routes_next(&source);
	return routes;
}
