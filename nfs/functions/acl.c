/*
 * ACL: permits or denies packets by addresses, protocol and ports; the first matching filter
 * decides.
 *
 * Filters are generated from a seed, or read from a file (tables/filters.h), and compiled by
 * rte_acl, those of IPv4 and IPv6 apart. Packets without a match get the default. Non-initial
 * fragments match as if both ports were 0. What is not understood is dropped, unless `unknown`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_acl.h>

#include "core/flow_burst.h"
#include "core/memory.h"
#include "core/nf.h"
#include "tables/filters.h"

enum { FILTERS, SEED, FILE_OF_FILTERS, DEFAULT_PERMIT, IPV6, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[FILTERS] = {"filters", "filters in the list, besides the default", 0, 10000, 1000},
	[SEED] = {"seed", "seed of the filters", 0, 4294967295, 1},
	[FILE_OF_FILTERS] = {"file",
			     "file with the filters, in place of those of filters and seed; none "
			     "if empty",
			     .text = ""},
	[DEFAULT_PERMIT] = {"default_permit", "1: packets without a match are permitted", 0, 1, 1},
	[IPV6] = {NF_IPV6},
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "pass"),
};

enum { PERMITTED, DENIED, UNMATCHED, OTHER };
static const struct nf_counter counters[] = {
	[PERMITTED] = {"permitted", "packets sent on"},
	[DENIED] = {"denied", "packets freed"},
	[UNMATCHED] = {"unmatched", "packets without a match, permitted or denied"},
	NF_OTHER_COUNTERS(OTHER),
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

/*
 * The same of IPv6, whose addresses are four fields each, as a packet without extension headers has
 * it: the end of the header, and the ports.
 */
struct key_ipv6 {
	uint8_t protocol, hop_limit;
	uint8_t source[16], destination[16];
	rte_be16_t source_port, destination_port;
};

enum {
	SOURCE_IPV6 = 1,
	DESTINATION_IPV6 = SOURCE_IPV6 + 4,
	SOURCE_PORT_IPV6 = DESTINATION_IPV6 + 4,
	DESTINATION_PORT_IPV6,
	FIELDS_IPV6
};
#define FIELD_IPV6(at, field, i)                                                                   \
	[(at) + (i)] = {RTE_ACL_FIELD_TYPE_MASK, 4, (at) + (i), (at) + (i),                        \
			offsetof(struct key_ipv6, field) + 4 * (i)}
static const struct rte_acl_field_def fields_ipv6[FIELDS_IPV6] = {
	[PROTOCOL] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTOCOL, 0,
		      offsetof(struct key_ipv6, protocol)},
	FIELD_IPV6(SOURCE_IPV6, source, 0),
	FIELD_IPV6(SOURCE_IPV6, source, 1),
	FIELD_IPV6(SOURCE_IPV6, source, 2),
	FIELD_IPV6(SOURCE_IPV6, source, 3),
	FIELD_IPV6(DESTINATION_IPV6, destination, 0),
	FIELD_IPV6(DESTINATION_IPV6, destination, 1),
	FIELD_IPV6(DESTINATION_IPV6, destination, 2),
	FIELD_IPV6(DESTINATION_IPV6, destination, 3),
	[SOURCE_PORT_IPV6] = {RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT_IPV6, SOURCE_PORT_IPV6,
			      offsetof(struct key_ipv6, source_port)},
	[DESTINATION_PORT_IPV6] = {RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT_IPV6,
				   SOURCE_PORT_IPV6, offsetof(struct key_ipv6, destination_port)},
};

RTE_ACL_RULE_DEF(acl_filter_ipv6, FIELDS_IPV6);

/* User data of a filter is its number, from 1, and whether it permits; without a match it is 0. */
#define NO_FILTER 0u
#define PERMITS 1u
#define NUMBER_SHIFT 1

struct acl {
	struct rte_acl_ctx *filters, *filters_ipv6; /* NULL without any */
	uint32_t by_default;                        /* PERMITS, or 0 */
};

/* Filters that come first have the higher priority. */
static struct rte_acl_rule_data data_of(const struct filter *filter, uint32_t place)
{
	return (struct rte_acl_rule_data){
		.category_mask = 1,
		.priority = (int32_t)(RTE_ACL_MAX_PRIORITY - place),
		.userdata = (place + 1) << NUMBER_SHIFT | (filter->permit ? PERMITS : 0),
	};
}

static struct rte_acl_field range_of(struct port_range ports)
{
	return (struct rte_acl_field){.value.u16 = ports.low, .mask_range.u16 = ports.high};
}

static struct rte_acl_field protocol_of(const struct filter *filter)
{
	return (struct rte_acl_field){.value.u8 = filter->protocol,
				      .mask_range.u8 = filter->protocol ? 0xff : 0};
}

static struct rte_acl_field prefix_of(struct prefix prefix)
{
	return (struct rte_acl_field){.value.u32 = prefix.address, .mask_range.u32 = prefix.depth};
}

static int add_filter(struct rte_acl_ctx *context, const struct filter *filter, uint32_t place)
{
	const struct acl_filter rule = {
		.data = data_of(filter, place),
		.field = {[PROTOCOL] = protocol_of(filter),
			  [SOURCE] = prefix_of(filter->source),
			  [DESTINATION] = prefix_of(filter->destination),
			  [SOURCE_PORT] = range_of(filter->source_ports),
			  [DESTINATION_PORT] = range_of(filter->destination_ports)},
	};

	return rte_acl_add_rules(context, (const struct rte_acl_rule *)&rule, 1);
}

/* A prefix of IPv6 as four of 32 bits. */
static void put_prefix(struct rte_acl_field fields[4], const struct prefix_ipv6 *prefix)
{
	for (int i = 0; i < 4; i++) {
		rte_be32_t word;

		memcpy(&word, prefix->address + 4 * i, sizeof(word));
		fields[i] = (struct rte_acl_field){
			.value.u32 = rte_be_to_cpu_32(word),
			.mask_range.u32 = (uint32_t)RTE_MIN(RTE_MAX(prefix->depth - 32 * i, 0), 32),
		};
	}
}

static int add_filter_ipv6(struct rte_acl_ctx *context, const struct filter *filter, uint32_t place)
{
	struct acl_filter_ipv6 rule = {
		.data = data_of(filter, place),
		.field = {[PROTOCOL] = protocol_of(filter),
			  [SOURCE_PORT_IPV6] = range_of(filter->source_ports),
			  [DESTINATION_PORT_IPV6] = range_of(filter->destination_ports)},
	};

	put_prefix(&rule.field[SOURCE_IPV6], &filter->source_ipv6);
	put_prefix(&rule.field[DESTINATION_IPV6], &filter->destination_ipv6);
	return rte_acl_add_rules(context, (const struct rte_acl_rule *)&rule, 1);
}

static int fill(struct rte_acl_ctx *context, const struct filter *filters, uint32_t n,
		enum filter_family family)
{
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	int result = 0;

	memcpy(config.defs, fields, sizeof(fields));
	if (family == FILTER_IPV6) {
		config.num_fields = FIELDS_IPV6;
		memcpy(config.defs, fields_ipv6, sizeof(fields_ipv6));
	}
	for (uint32_t i = 0; i < n && result == 0; i++) {
		if (filters[i].family != family && filters[i].family != FILTER_BOTH)
			continue;
		result = family == FILTER_IPV6 ? add_filter_ipv6(context, &filters[i], i)
					       : add_filter(context, &filters[i], i);
	}
	return result < 0 ? result : rte_acl_build(context, &config);
}

/* The filters of a family, of which there are some. NULL after printing why. */
static struct rte_acl_ctx *compile(const struct nf *nf, const struct filter *filters, uint32_t n,
				   enum filter_family family)
{
	static unsigned int n_created;
	char name[RTE_ACL_NAMESIZE];
	const struct rte_acl_param param = {
		.name = name,
		.socket_id = nf->socket,
		.rule_size = RTE_ACL_RULE_SZ(family == FILTER_IPV6 ? FIELDS_IPV6 : FIELDS),
		.max_rule_num = n + 1,
	};
	struct rte_acl_ctx *context;
	int result;

	snprintf(name, sizeof(name), "acl_%u", __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	context = rte_acl_create(&param);
	result = context ? fill(context, filters, n, family) : -ENOMEM;
	if (result == 0)
		return context;
	fprintf(stderr, "ACL: cannot compile %u filters: %d\n", n, result);
	rte_acl_free(context);
	return NULL;
}

static bool has_family(const struct filter *filters, uint32_t n, enum filter_family family)
{
	for (uint32_t i = 0; i < n; i++)
		if (filters[i].family == family || filters[i].family == FILTER_BOTH)
			return true;
	return false;
}

/* Compile the filters of both families; false after printing why. */
static bool compile_all(const struct nf *nf, struct acl *acl, const struct filter *filters,
			uint32_t n)
{
	const bool ipv4 = has_family(filters, n, FILTER_IPV4);
	const bool ipv6 = has_family(filters, n, FILTER_IPV6);

	if (ipv4)
		acl->filters = compile(nf, filters, n, FILTER_IPV4);
	if (ipv6 && (!ipv4 || acl->filters))
		acl->filters_ipv6 = compile(nf, filters, n, FILTER_IPV6);
	return (!ipv4 || acl->filters) && (!ipv6 || acl->filters_ipv6);
}

/* The filters of the settings; NULL after printing why. */
static struct filter *make_filters(const struct nf *nf, uint32_t *n)
{
	if (*nf->texts[FILE_OF_FILTERS])
		return filters_read(nf->kind->name, nf->texts[FILE_OF_FILTERS], n);
	*n = (uint32_t)nf->settings[FILTERS];
	return filters_generate(nf->kind->name, *n, (uint64_t)nf->settings[SEED]);
}

static void destroy(struct nf *nf)
{
	struct acl *acl = nf->state;

	rte_acl_free(acl->filters);
	rte_acl_free(acl->filters_ipv6);
}

static int create(struct nf *nf)
{
	struct acl *acl = nf->state;
	struct filter *filters;
	uint32_t n = 0;
	bool good;

	acl->by_default = nf->settings[DEFAULT_PERMIT] == 1 ? PERMITS : 0;
	filters = make_filters(nf, &n);
	good = filters && compile_all(nf, acl, filters, n);
	free(filters);
	nf->n_rules = n;
	return good ? 0 : -EINVAL;
}

/* Classify packets by their keys, each of `size` bytes; send or free each. */
static void decide(struct nf *nf, const struct rte_acl_ctx *filters, const void *keys, size_t size,
		   struct rte_mbuf *const *packets, uint16_t n, struct nf_out *out)
{
	const struct acl *acl = nf->state;
	const uint8_t *key_pointers[NF_BURST];
	struct rte_mbuf *denied[NF_BURST];
	uint16_t n_denied = 0, unmatched = 0;
	uint32_t verdicts[NF_BURST];

	for (uint16_t i = 0; i < n; i++)
		key_pointers[i] = (const uint8_t *)keys + i * size;
	if (filters)
		rte_acl_classify(filters, key_pointers, verdicts, n, 1);
	else
		memset(verdicts, 0, sizeof(verdicts)); /* NO_FILTER */
	for (uint16_t i = 0; i < n; i++) {
		const bool matched = verdicts[i] != NO_FILTER;

		unmatched += !matched;
		if (matched && nf->rule_counts)
			nf->rule_counts[(verdicts[i] >> NUMBER_SHIFT) - 1]++;
		if ((matched ? verdicts[i] : acl->by_default) & PERMITS)
			nf_send(out, packets[i]);
		else
			denied[n_denied++] = packets[i];
	}
	rte_pktmbuf_free_bulk(denied, n_denied);
	nf->counters[PERMITTED] += n - n_denied;
	nf->counters[DENIED] += n_denied;
	nf->counters[UNMATCHED] += unmatched;
}

static void write_key_ipv6(struct key_ipv6 *key, struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv6_hdr *, packet->l3);
	const rte_be16_t *ports = packet_ports(mbuf, packet);

	if (likely(ports && packet->l4 == packet->l3 + sizeof(*ip))) {
		memcpy(key, &ip->proto, sizeof(*key));
		return;
	}
	memcpy(key, &ip->proto, offsetof(struct key_ipv6, source_port));
	key->protocol = packet->protocol;
	key->source_port = ports ? ports[0] : 0;
	key->destination_port = ports ? ports[1] : 0;
}

static void decide_ipv6(struct nf *nf, const struct flow_burst *burst, struct nf_out *out)
{
	const struct acl *acl = nf->state;
	struct key_ipv6 keys[NF_BURST];

	if (nf->leaves_ipv6_unread) {
		nf->counters[nf->passes_ipv6 ? PERMITTED : DENIED] += burst->n_ipv6;
		if (nf->passes_ipv6)
			nf_send_bulk(out, burst->ipv6, burst->n_ipv6);
		else
			rte_pktmbuf_free_bulk((struct rte_mbuf **)(uintptr_t)burst->ipv6,
					      burst->n_ipv6);
		return;
	}
	for (uint16_t i = 0; i < burst->n_ipv6; i++)
		write_key_ipv6(&keys[i], burst->ipv6[i], &burst->ipv6_headers[i]);
	decide(nf, acl->filters_ipv6, keys, sizeof(*keys), burst->ipv6, burst->n_ipv6, out);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct acl *acl = nf->state;
	struct flow_burst burst;

	flow_burst_read(&burst, nf, OTHER, packets, n, out);
	if (burst.n > 0)
		decide(nf, acl->filters, burst.keys, sizeof(*burst.keys), burst.packets, burst.n,
		       out);
	if (unlikely(burst.n_ipv6 > 0))
		decide_ipv6(nf, &burst, out);
}

NF_KIND("ACL", "permits or denies by addresses, protocol and ports",
	.state_bytes = sizeof(struct acl), .create = create, .process = process, .destroy = destroy)
