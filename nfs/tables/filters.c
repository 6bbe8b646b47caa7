#include "tables/filters.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "core/random.h"

static const struct port_range any_port = {0, UINT16_MAX};

static struct prefix prefix_of(uint32_t address, uint8_t depth)
{
	const uint32_t mask = depth == 0 ? 0 : ~UINT32_C(0) << (32 - depth);

	return (struct prefix){.address = address & mask, .depth = depth};
}

static struct prefix a_source(uint64_t *random)
{
	static const uint8_t depths[] = {0, 0, 0, 16, 20, 24, 24, 32};
	const uint32_t address = 10u << 24 | (uint32_t)random_next(random) >> 8;

	return prefix_of(address, depths[random_below(random, sizeof(depths))]);
}

static struct prefix a_destination(uint64_t *random)
{
	static const uint8_t depths[] = {8, 12, 16, 16, 20, 24, 24, 24, 28, 32, 32, 32};
	const uint32_t first = 11 + random_below(random, 100);
	const uint8_t depth = depths[random_below(random, sizeof(depths))];

	return prefix_of(first << 24 | (uint32_t)random_next(random) >> 8, depth);
}

static struct port_range a_service(uint64_t *random)
{
	static const uint16_t services[] = {22,  25,  53,  80,   110,  123,  143, 161,
					    389, 443, 993, 1433, 3306, 5060, 8080};
	const uint32_t kind = random_below(random, 10);
	uint16_t port;

	if (kind < 3)
		return any_port;
	if (kind < 4)
		return (struct port_range){1024, UINT16_MAX};
	if (kind < 5) {
		port = 1024 + random_below(random, 60000);
		return (struct port_range){port, port + random_below(random, 100)};
	}
	port = services[random_below(random, sizeof(services) / sizeof(services[0]))];
	return (struct port_range){port, port};
}

static uint8_t a_protocol(uint64_t *random)
{
	const uint32_t kind = random_below(random, 20);

	if (kind < 11)
		return IPPROTO_TCP;
	if (kind < 17)
		return IPPROTO_UDP;
	return kind < 18 ? IPPROTO_ICMP : 0;
}

struct filter filters_next(uint64_t *random)
{
	struct filter filter = {
		.family = FILTER_IPV4,
		.source_ports = any_port,
		.destination_ports = any_port,
	};

	/* one after another: arguments and initializers have no order of their own */
	filter.protocol = a_protocol(random);
	filter.permit = random_below(random, 4) > 0;
	filter.source = a_source(random);
	filter.destination = a_destination(random);
	if (filter.protocol == IPPROTO_TCP || filter.protocol == IPPROTO_UDP)
		filter.destination_ports = a_service(random);
	if (filter.protocol == IPPROTO_UDP && random_below(random, 8) == 0)
		filter.source_ports = (struct port_range){1024, UINT16_MAX};
	return filter;
}

struct filter *filters_generate(const char *of, uint32_t n, uint64_t seed)
{
	struct filter *filters = calloc(n + 1, sizeof(*filters));

	if (!filters)
		fprintf(stderr, "%s: no memory for %u filters\n", of, n);
	for (uint32_t i = 0; filters && i < n; i++)
		filters[i] = filters_next(&seed);
	return filters;
}
