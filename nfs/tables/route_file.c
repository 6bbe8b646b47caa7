#include <stdlib.h>

#include <rte_ip.h>

#include "tables/routes.h"
#include "tables/table_file.h"

static const char hint[] = "PREFIX/LENGTH HOP, as `10.0.0.0/8 3`";

/* A route and where it stands. */
struct line {
	struct route route;
	unsigned int number;
};

struct route_file {
	struct table_file file;
	struct line *lines;
	uint32_t n, room;
};

/* Destinations that no router forwards to (RFC 1812, section 5.3.7). */
static const struct route special[] = {
	{RTE_IPV4(0, 0, 0, 0), 8, 0},      {RTE_IPV4(127, 0, 0, 0), 8, 0},
	{RTE_IPV4(169, 254, 0, 0), 16, 0}, {RTE_IPV4(224, 0, 0, 0), 4, 0},
	{RTE_IPV4(240, 0, 0, 0), 4, 0},
};

static bool is_forwarded(const struct route *route)
{
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (route->depth >= special[i].depth && route_covers(&special[i], route->prefix))
			return false;
	return true;
}

/* The route of a line; false after printing what is wrong with it. */
static bool read_route(struct table_file *file, const struct routes_limits *limits,
		       struct route *route)
{
	struct prefix prefix;
	uint32_t hop;

	if (file->n != 2) {
		table_fault(file, "%u word%s instead of 2", file->n, file->n == 1 ? "" : "s");
		return false;
	}
	if (!table_prefix(file, file->words[0], &prefix))
		return false;
	if (!table_number(file->words[1], 0, limits->hops - 1, &hop)) {
		table_fault(file, "%s: not a next hop: they are numbered from 0 to %u",
			    file->words[1], limits->hops - 1);
		return false;
	}
	*route = (struct route){.prefix = prefix.address, .depth = prefix.depth, .hop = hop};
	if (!is_forwarded(route)) {
		table_fault(file, "%s: routers forward nothing there (RFC 1812, section 5.3.7)",
			    file->words[0]);
		return false;
	}
	if (route->depth == 32 && route->prefix == limits->own) {
		table_fault(file, "%s: the router's own address", file->words[0]);
		return false;
	}
	return true;
}

static int by_prefix(const void *a, const void *b)
{
	const struct line *one = a, *other = b;

	if (one->route.prefix != other->route.prefix)
		return one->route.prefix < other->route.prefix ? -1 : 1;
	if (one->route.depth != other->route.depth)
		return one->route.depth < other->route.depth ? -1 : 1;
	return one->number < other->number ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
	const struct line *one = a, *other = b;

	return one->number < other->number ? -1 : 1;
}

/* Report prefixes that stand twice: move them to the front, then print them in order. */
static void report_twice(struct route_file *routes)
{
	struct line *lines = routes->lines;
	uint32_t twice = 0;

	qsort(lines, routes->n, sizeof(*lines), by_prefix);
	for (uint32_t i = 1; i < routes->n; i++)
		if (lines[i].route.prefix == lines[i - 1].route.prefix &&
		    lines[i].route.depth == lines[i - 1].route.depth)
			lines[twice++].number = lines[i].number;
	if (twice == 0)
		return;
	qsort(lines, twice, sizeof(*lines), by_number);
	for (uint32_t i = 0; i < twice; i++)
		table_fault_at(&routes->file, lines[i].number, "the prefix has a route already");
}

static bool grow(struct route_file *routes)
{
	struct line *more;

	if (routes->n < routes->room)
		return true;
	more = realloc(routes->lines, (2 * routes->room + 64) * sizeof(*more));
	if (!more) {
		fprintf(stderr, "%s: no memory for the routes of %s\n", routes->file.of,
			routes->file.path);
		return false;
	}
	routes->lines = more;
	routes->room = 2 * routes->room + 64;
	return true;
}

/* Read all lines; false without memory. */
static bool read_lines(struct route_file *routes, const struct routes_limits *limits)
{
	while (table_file_next(&routes->file)) {
		if (!grow(routes))
			return false;
		if (routes->n == ROUTES_MOST) {
			table_fault(&routes->file, "more than %d routes", ROUTES_MOST);
			return true;
		}
		if (read_route(&routes->file, limits, &routes->lines[routes->n].route)) {
			routes->lines[routes->n].number = routes->file.line;
			routes->lines[routes->n].route.number = routes->n + 1;
			routes->n++;
		}
	}
	return true;
}

/* The routes in the order of their prefixes, shorter ones first; NULL without memory. */
static struct route *routes_of(const struct route_file *routes)
{
	struct route *all = calloc(routes->n + 1, sizeof(*all));

	for (uint32_t i = 0; all && i < routes->n; i++)
		all[i] = routes->lines[i].route;
	return all;
}

struct route *routes_read(const char *path, const struct routes_limits *limits, uint32_t *n)
{
	struct route_file routes = {0};
	struct route *all = NULL;
	bool good;

	if (!table_file_open(&routes.file, limits->of, path, hint))
		return NULL;
	good = read_lines(&routes, limits);
	if (good)
		report_twice(&routes);
	good &= table_file_close(&routes.file);
	if (good)
		all = routes_of(&routes);
	*n = routes.n;
	free(routes.lines);
	return all;
}
