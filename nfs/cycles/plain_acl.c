#include <rte_acl.h>

#include "core/packet.h"
#include "cycles/peer.h"
#include "tables/filters.h"

#define FILTERS 1000
#define FIELDS 5

RTE_ACL_RULE_DEF(plain_filter, FIELDS);

static const struct rte_acl_field_def fields[FIELDS] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(struct flow_key, protocol)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, offsetof(struct flow_key, source)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, offsetof(struct flow_key, destination)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, offsetof(struct flow_key, source_port)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, offsetof(struct flow_key, destination_port)},
};

static int add(struct rte_acl_ctx *filters, const struct filter *filter, uint32_t place)
{
	const struct plain_filter rule = {
		.data = {.category_mask = 1,
			 .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - place),
			 .userdata = filter->permit ? 2 : 1},
		.field = {{{.u8 = filter->protocol}, {.u8 = filter->protocol ? 0xff : 0}},
			  {{.u32 = filter->source.address}, {.u32 = filter->source.depth}},
			  {{.u32 = filter->destination.address},
			   {.u32 = filter->destination.depth}},
			  {{.u16 = filter->source_ports.low}, {.u16 = filter->source_ports.high}},
			  {{.u16 = filter->destination_ports.low},
			   {.u16 = filter->destination_ports.high}}},
	};

	return rte_acl_add_rules(filters, (const struct rte_acl_rule *)&rule, 1);
}

static void *create(void)
{
	const struct rte_acl_param param = {
		.name = "plain_acl",
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = FILTERS,
	};
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	struct rte_acl_ctx *filters = rte_acl_create(&param);
	uint64_t random = 1;

	for (uint32_t i = 0; filters && i < FILTERS; i++) {
		const struct filter filter = filters_next(&random);

		if (add(filters, &filter, i) != 0)
			return NULL;
	}
	memcpy(config.defs, fields, sizeof(fields));
	return filters && rte_acl_build(filters, &config) == 0 ? filters : NULL;
}

static void process(void *filters, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_key keys[NF_BURST];
	const uint8_t *wanted[NF_BURST];
	uint32_t verdicts[NF_BURST];

	for (uint16_t i = 0; i < n; i++) {
		keys[i] = packet_plain_flow(packets[i]);
		wanted[i] = (const uint8_t *)&keys[i];
	}
	rte_acl_classify(filters, wanted, verdicts, n, 1);
	for (uint16_t i = 0; i < n; i++) {
		if (verdicts[i] == 1)
			rte_pktmbuf_free(packets[i]);
		else
			nf_send(out, packets[i]);
	}
}

static void destroy(void *filters)
{
	rte_acl_free(filters);
}

PLAIN_PEER("ACL", "rte_acl_classify")
