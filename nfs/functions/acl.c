/*
 * ACL: permits or denies packets by addresses, protocol and ports; the first matching filter
 * decides.
 *
 * Filters are generated from a seed and compiled by rte_acl. Packets without a match get the
 * default. Non-initial fragments match as if both ports were 0. Other than IPv4 passes.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_acl.h>

#include "core/flow_burst.h"
#include "core/memory.h"
#include "core/nf.h"
#include "tables/filters.h"

enum { FILTERS, SEED, DEFAULT_PERMIT };
static const struct nf_parameter parameters[] = {
	[FILTERS] = {"filters", "filters in the list, besides the default", 0, 10000, 1000},
	[SEED] = {"seed", "seed of the filters", 0, 4294967295, 1},
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

static int fill(struct nf *nf, struct rte_acl_ctx *filters)
{
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	uint64_t random = (uint64_t)nf->settings[SEED];
	int result = 0;

	for (uint32_t i = 0; i < (uint32_t)nf->settings[FILTERS] && result == 0; i++) {
		const struct filter filter = filters_next(&random);
		const struct acl_filter rule = compiled(&filter, i);

		result = rte_acl_add_rules(filters, (const struct rte_acl_rule *)&rule, 1);
	}
	memcpy(config.defs, fields, sizeof(fields));
	if (result == 0 && nf->settings[FILTERS] > 0)
		result = rte_acl_build(filters, &config);
	return result;
}

static struct rte_acl_ctx *make_filters(struct nf *nf)
{
	static unsigned int n_created;
	char name[RTE_ACL_NAMESIZE];
	const struct rte_acl_param param = {
		.name = name,
		.socket_id = nf->socket,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = (uint32_t)nf->settings[FILTERS] + 1,
	};
	struct rte_acl_ctx *filters;
	int result;

	snprintf(name, sizeof(name), "acl_%u", __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	filters = rte_acl_create(&param);
	result = filters ? fill(nf, filters) : -ENOMEM;
	if (result == 0)
		return filters;
	fprintf(stderr, "ACL: cannot compile %g filters: %d\n", nf->settings[FILTERS], result);
	rte_acl_free(filters);
	return NULL;
}

static int create(struct nf *nf)
{
	struct acl *acl = nf_zalloc_for(nf->kind->name, sizeof(*acl));

	if (!acl)
		return -ENOMEM;
	acl->permits[NO_FILTER] = nf->settings[DEFAULT_PERMIT] == 1;
	acl->permits[PERMIT] = true;
	acl->filters = make_filters(nf);
	if (!acl->filters) {
		nf_free(acl);
		return -ENOMEM;
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
	if (nf->settings[FILTERS] > 0)
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

static struct nf_kind kind = {
	.name = "ACL",
	.help = "permits or denies by addresses, protocol and ports",
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.counters = counters,
	.n_counters = RTE_DIM(counters),
	.create = create,
	.process = process,
	.destroy = destroy,
};

NF_REGISTER(kind)
