/*
 * ACL: permits or denies packets by addresses, protocol and ports; the first matching filter
 * decides.
 *
 * Filters are generated from a seed, or read from a file (tables/filters.h), and compiled by
 * rte_acl. Packets without a match get the
 * default. Non-initial fragments match as if both ports were 0. Other than IPv4 passes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_acl.h>

#include "core/flow_burst.h"
#include "core/memory.h"
#include "core/nf.h"
#include "tables/filters.h"

enum { FILTERS, SEED, FILE_OF_FILTERS, DEFAULT_PERMIT };
static const struct nf_parameter parameters[] = {
	[FILTERS] = {"filters", "filters in the list, besides the default", 0, 10000, 1000},
	[SEED] = {"seed", "seed of the filters", 0, 4294967295, 1},
	[FILE_OF_FILTERS] = {"file",
			     "file with the filters, in place of those of filters and seed; none "
			     "if empty",
			     .text = ""},
	[DEFAULT_PERMIT] = {"default_permit", "1: packets without a match are permitted", 0, 1, 1},
};

enum { PERMITTED, DENIED, UNMATCHED, OTHER, MALFORMED };
static const struct nf_counter counters[] = {
	[PERMITTED] = {"permitted", "packets sent on"},
	[DENIED] = {"denied", "packets freed"},
	[UNMATCHED] = {"unmatched", "packets without a match, permitted or denied"},
	[OTHER] = {"other", "packets that are not IPv4, sent on as they are"},
	[MALFORMED] = {"malformed", "packets freed"},
};

/* Fields of a flow key in the order that rte_acl requires: the one-byte field first. */
enum { PROTOCOL, SOURCE, DESTINATION, SOURCE_PORT, DESTINATION_PORT, FIELDS };
static const struct rte_acl_field_def fields[FIELDS] = {
	[PROTOCOL] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTOCOL, 0,
		      offsetof(struct flow_key, protocol)},
	[SOURCE] = {RTE_ACL_FIELD_TYPE_MASK, 4, SOURCE, 1, offsetof(struct flow_key, source)},
	[DESTINATION] = {RTE_ACL_FIELD_TYPE_MASK, 4, DESTINATION, 2,
			 offsetof(struct flow_key, destination)},
	[SOURCE_PORT] = {RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT, 3,
			 offsetof(struct flow_key, source_port)},
	[DESTINATION_PORT] = {RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT, 3,
			      offsetof(struct flow_key, destination_port)},
};

RTE_ACL_RULE_DEF(acl_filter, FIELDS);

/* User data of a filter; rte_acl returns 0 without a match. */
enum verdict { NO_FILTER, DENY, PERMIT, VERDICTS };

struct acl {
	struct rte_acl_ctx *filters;
	uint32_t n;
	bool permits[VERDICTS];
};

static struct acl_filter compiled(const struct filter *filter, uint32_t place)
{
	return (struct acl_filter){
		.data = {.category_mask = 1,
			 .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - place),
			 .userdata = filter->permit ? PERMIT : DENY},
		.field = {[PROTOCOL] = {.value.u8 = filter->protocol,
					.mask_range.u8 = filter->protocol ? 0xff : 0},
			  [SOURCE] = {.value.u32 = filter->source.address,
				      .mask_range.u32 = filter->source.depth},
			  [DESTINATION] = {.value.u32 = filter->destination.address,
					   .mask_range.u32 = filter->destination.depth},
			  [SOURCE_PORT] = {.value.u16 = filter->source_ports.low,
					   .mask_range.u16 = filter->source_ports.high},
			  [DESTINATION_PORT] = {.value.u16 = filter->destination_ports.low,
						.mask_range.u16 = filter->destination_ports.high}},
	};
}

static int fill(struct rte_acl_ctx *context, const struct filter *filters, uint32_t n)
{
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	int result = 0;

	for (uint32_t i = 0; i < n && result == 0; i++) {
		const struct acl_filter rule = compiled(&filters[i], i);

		result = rte_acl_add_rules(context, (const struct rte_acl_rule *)&rule, 1);
	}
	memcpy(config.defs, fields, sizeof(fields));
	if (result == 0 && n > 0)
		result = rte_acl_build(context, &config);
	return result;
}

/* NULL after printing why. */
static struct rte_acl_ctx *compile(const struct nf *nf, const struct filter *filters, uint32_t n)
{
	static unsigned int n_created;
	char name[RTE_ACL_NAMESIZE];
	const struct rte_acl_param param = {
		.name = name,
		.socket_id = nf->socket,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = n + 1,
	};
	struct rte_acl_ctx *context;
	int result;

	snprintf(name, sizeof(name), "acl_%u", __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	context = rte_acl_create(&param);
	result = context ? fill(context, filters, n) : -ENOMEM;
	if (result == 0)
		return context;
	fprintf(stderr, "ACL: cannot compile %u filters: %d\n", n, result);
	rte_acl_free(context);
	return NULL;
}

/* The filters of the settings; NULL after printing why. */
static struct filter *make_filters(const struct nf *nf, uint32_t *n)
{
	if (*nf->texts[FILE_OF_FILTERS])
		return filters_read(nf->kind->name, nf->texts[FILE_OF_FILTERS], n);
	*n = (uint32_t)nf->settings[FILTERS];
	return filters_generate(nf->kind->name, *n, (uint64_t)nf->settings[SEED]);
}

static int create(struct nf *nf)
{
	struct acl *acl = nf_zalloc_for(nf->kind->name, sizeof(*acl));
	struct filter *filters;

	if (!acl)
		return -ENOMEM;
	acl->permits[NO_FILTER] = nf->settings[DEFAULT_PERMIT] == 1;
	acl->permits[PERMIT] = true;
	filters = make_filters(nf, &acl->n);
	acl->filters = filters ? compile(nf, filters, acl->n) : NULL;
	free(filters);
	if (!acl->filters) {
		nf_free(acl);
		return -EINVAL;
	}
	nf->state = acl;
	return 0;
}

/* Send or free the packets of a classified burst. */
static void apply_verdicts(struct nf *nf, const struct flow_burst *burst, const uint32_t *verdicts,
			   struct nf_out *out)
{
	const struct acl *acl = nf->state;
	struct rte_mbuf *denied[NF_BURST];
	uint16_t n_denied = 0, unmatched = 0;

	for (uint16_t i = 0; i < burst->n; i++) {
		unmatched += verdicts[i] == NO_FILTER;
		if (acl->permits[verdicts[i]])
			nf_send(out, burst->packets[i]);
		else
			denied[n_denied++] = burst->packets[i];
	}
	rte_pktmbuf_free_bulk(denied, n_denied);
	nf->counters[PERMITTED] += burst->n - n_denied;
	nf->counters[DENIED] += n_denied;
	nf->counters[UNMATCHED] += unmatched;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct acl *acl = nf->state;
	struct flow_burst burst;
	uint32_t verdicts[NF_BURST];

	flow_burst_read(&burst, packets, n, out);
	nf->counters[OTHER] += burst.other;
	nf->counters[MALFORMED] += burst.malformed;
	if (burst.n == 0)
		return;
	if (acl->n > 0)
		rte_acl_classify(acl->filters, (const uint8_t **)burst.key_pointers, verdicts,
				 burst.n, 1);
	else
		memset(verdicts, 0, sizeof(verdicts)); /* NO_FILTER */
	apply_verdicts(nf, &burst, verdicts, out);
}

static void destroy(struct nf *nf)
{
	struct acl *acl = nf->state;

	rte_acl_free(acl->filters);
	nf_free(acl);
}

NF_KIND("ACL", "permits or denies by addresses, protocol and ports", .create = create,
	.process = process, .destroy = destroy)
