/* The DIR-24-8 table of IPRouter: 2^24 entries, and groups of 256 for prefixes longer than /24. */
#include <stdlib.h>

#include "functions/ip_router/table.h"
#include "gpu/kernels/ip_router.h"
#include "gpu/state/state.h"

_Static_assert(ROUTER_TO_ITSELF == TO_ITSELF, "special hops are those of the function in C");

struct table {
	u32 *words;
	u32 groups; /* in use */
};

static struct route *routes_of(const struct nf *nf, struct router_table *of)
{
	const struct routes_limits limits = {
		.of = nf->kind->name,
		.hops = (uint32_t)gpu_setting(nf, "hops"),
		.own = (uint32_t)gpu_setting(nf, "address"),
	};
	const char *path = gpu_text(nf, "file");

	of->own = limits.own;
	of->default_route = gpu_setting(nf, "default_route") == 1 && !*path;
	if (*path)
		return routes_read(path, &limits, &of->n);
	of->n = (uint32_t)gpu_setting(nf, "routes");
	return routes_generate(limits.of, of->n, (uint64_t)gpu_setting(nf, "seed"), limits.hops);
}

static void fill_entries(u32 *entries, u32 first, u32 n, u32 hop)
{
	for (u32 i = first; i < first + n; i++)
		entries[i] = hop;
}

/* Add a route to the table, which has all shorter ones and no longer ones. */
static void add(struct table *table, const struct route *route)
{
	u32 *entries = table->words + ROUTER_ENTRIES_AT, *groups = table->words + ROUTER_GROUPS_AT;
	u32 *entry = &entries[route->prefix >> 8];

	if (route->depth <= 24) {
		fill_entries(entries, route->prefix >> 8, 1u << (24 - route->depth), route->hop);
		return;
	}
	if (!(*entry & ROUTER_GROUP)) {
		fill_entries(groups, table->groups * 256, 256, *entry);
		*entry = ROUTER_GROUP | table->groups++;
	}
	fill_entries(groups, (*entry & ~ROUTER_GROUP) * 256 + (route->prefix & 255),
		     1u << (32 - route->depth), route->hop);
}

/* Add the routes of a depth: special ones first, so that later ones replace them. */
static void add_depth(struct table *table, const struct router_table *of,
		      const struct route *special, u32 n_special, u32 depth)
{
	for (u32 i = 0; i < n_special; i++)
		if (special[i].depth == depth)
			add(table, &special[i]);
	for (u32 i = 0; i < of->n; i++)
		if (of->routes[i].depth == depth)
			add(table, &of->routes[i]);
}

static u32 long_routes(const struct router_table *of)
{
	u32 n = ROUTER_TABLE_SPECIAL;

	for (u32 i = 0; i < of->n; i++)
		n += of->routes[i].depth > 24;
	return n;
}

static void fill(const struct nf *nf, const struct router_table *of, u32 *words)
{
	const u32 hops = (u32)gpu_setting(nf, "hops"), ports = (u32)gpu_setting(nf, "ports");
	struct route special[ROUTER_TABLE_SPECIAL];
	const u32 n_special = router_table_special(of->own, special);
	struct table table = {.words = words};

	for (u32 i = 0; i < hops; i++)
		words[i] = ports == 1 ? NF_FORWARD : NF_BRANCH + i % ports;
	fill_entries(words + ROUTER_ENTRIES_AT, 0, ROUTER_ENTRIES, router_table_default(of));
	for (u32 depth = 1; depth <= 32; depth++)
		add_depth(&table, of, special, n_special, depth);
}

static bool build(const struct nf *nf, struct gpu_state *state)
{
	struct router_table of = {0};
	struct route *routes = routes_of(nf, &of);
	u8 *room = NULL;

	if (!routes)
		return false;
	of.routes = routes;
	room = gpu_state_room(nf, state,
			      (ROUTER_GROUPS_AT + (size_t)long_routes(&of) * 256) * sizeof(u32));
	if (room)
		fill(nf, &of, (u32 *)room);
	free(routes);
	return room != NULL;
}

GPU_BUILDER_REGISTER(GPU_IP_ROUTER, build)
