/* The tuple space of ACL: filters by their masks, in a hash table of chains. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/kernels/acl.h"
#include "gpu/state/state.h"
#include "tables/filters.h"

#define MOST_TUPLES (33 * 33 * 2)

struct tuples {
	struct acl_tuple all[MOST_TUPLES]; /* in the order of their lowest filter */
	u32 n;
};

/* The kernel decides about IPv4 alone. */
static void remove_ipv6(struct filter *filters, uint32_t *n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (filters[i].family != FILTER_IPV6)
			filters[kept++] = filters[i];
	*n = kept;
}

static struct filter *filters_of(const struct nf *nf, uint32_t *n)
{
	const char *path = gpu_text(nf, "file");

	if (*path) {
		struct filter *filters = filters_read(nf->kind->name, path, n);

		if (filters)
			remove_ipv6(filters, n);
		return filters;
	}
	*n = (uint32_t)gpu_setting(nf, "filters");
	return filters_generate(nf->kind->name, *n, (uint64_t)gpu_setting(nf, "seed"));
}

static u32 mask_of(const struct prefix *prefix)
{
	return prefix->depth == 0 ? 0 : ~0u << (32 - prefix->depth);
}

/* The tuple of a filter, which is added if it is new. */
static u32 tuple_of(struct tuples *tuples, const struct filter *filter, u32 number)
{
	const struct acl_tuple tuple = {
		.source_mask = mask_of(&filter->source),
		.destination_mask = mask_of(&filter->destination),
		.has_protocol = filter->protocol != 0,
		.lowest = number,
	};
	u32 i = 0;

	while (i < tuples->n && (tuples->all[i].source_mask != tuple.source_mask ||
				 tuples->all[i].destination_mask != tuple.destination_mask ||
				 tuples->all[i].has_protocol != tuple.has_protocol))
		i++;
	if (i == tuples->n)
		tuples->all[tuples->n++] = tuple;
	return i;
}

static struct acl_filter_entry entry_of(const struct filter *filter, u32 tuple)
{
	return (struct acl_filter_entry){
		.source = filter->source.address,
		.destination = filter->destination.address,
		.protocol = filter->protocol,
		.tuple = tuple,
		.source_ports = filter->source_ports.low | (u32)filter->source_ports.high << 16,
		.destination_ports =
			filter->destination_ports.low | (u32)filter->destination_ports.high << 16,
		.permit = filter->permit,
	};
}

/* Fill chains from the last filter on, so that each begins with its lowest one. */
static void fill_chains(u32 *buckets, u32 n_buckets, struct acl_filter_entry *entries, u32 n)
{
	memset(buckets, 0xff, n_buckets * sizeof(*buckets));
	for (u32 i = n; i-- > 0;) {
		struct acl_filter_entry *entry = &entries[i];
		const u32 hash = acl_bucket(entry->tuple, entry->source, entry->destination,
					    entry->protocol);

		entry->next = buckets[hash & (n_buckets - 1)];
		buckets[hash & (n_buckets - 1)] = i;
	}
}

static bool fill(const struct nf *nf, const struct filter *filters, u32 n, struct tuples *tuples,
		 struct gpu_state *state)
{
	struct acl_head head = {.buckets = 1, .default_permit = 0};
	struct acl_filter_entry *entries;
	u8 *room;

	while (head.buckets < 2 * n)
		head.buckets *= 2;
	head.default_permit = gpu_setting(nf, "default_permit") == 1;
	head.tuples_at = 64;
	head.buckets_at = head.tuples_at + (u32)sizeof(tuples->all);
	head.filters_at = head.buckets_at + head.buckets * (u32)sizeof(u32);
	room = gpu_state_room(nf, state, head.filters_at + n * sizeof(*entries));
	if (!room)
		return false;
	entries = (struct acl_filter_entry *)(room + head.filters_at);
	for (u32 i = 0; i < n; i++)
		entries[i] = entry_of(&filters[i], tuple_of(tuples, &filters[i], i));
	head.n_tuples = tuples->n;
	memcpy(room, &head, sizeof(head));
	memcpy(room + head.tuples_at, tuples->all, tuples->n * sizeof(tuples->all[0]));
	fill_chains((u32 *)(room + head.buckets_at), head.buckets, entries, n);
	return true;
}

static bool build(const struct nf *nf, struct gpu_state *state)
{
	uint32_t n = 0;
	struct filter *filters = filters_of(nf, &n);
	struct tuples *tuples = calloc(1, sizeof(*tuples));
	bool good = false;

	if (!tuples)
		fprintf(stderr, "%s: no memory for tuples\n", nf->kind->name);
	if (filters && tuples)
		good = fill(nf, filters, n, tuples, state);
	free(tuples);
	free(filters);
	return good;
}

GPU_BUILDER_REGISTER(GPU_ACL, build)
