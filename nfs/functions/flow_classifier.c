/*
 * FlowClassifier: assigns flows to service classes (RFC 4594) and marks their packets.
 *
 * A flow is classified by protocol and ports at its first packet; later its class is looked up in a
 * hash table. All IP packets get the codepoint of their class (RFC 2474). Non-initial fragments
 * have no ports and belong to the standard class.
 */
#include "core/flow_table.h"

enum { MARK = FLOW_PARAMETERS, UNKNOWN };
static const struct nf_parameter parameters[] = {
	FLOW_TABLE_PARAMETERS,
	[MARK] = {"mark", "1: set packets to the codepoint of their class", 0, 1, 1},
	NF_OTHER_PARAMETERS(UNKNOWN, "pass", "pass"),
};

enum service { STANDARD, TELEPHONY, SIGNALING, LOW_LATENCY, BULK, MANAGEMENT, CLASSES };
enum { OTHER = FLOW_COUNTERS, OF_CLASS = OTHER + 3 };
static const struct nf_counter counters[] = {
	FLOW_TABLE_COUNTERS,
	NF_OTHER_COUNTERS(OTHER),
	[OF_CLASS + STANDARD] = {"standard", "packets of the standard class"},
	[OF_CLASS + TELEPHONY] = {"telephony", "packets of telephony"},
	[OF_CLASS + SIGNALING] = {"signaling", "packets of call signaling"},
	[OF_CLASS + LOW_LATENCY] = {"low_latency", "packets of interactive applications: the Web"},
	[OF_CLASS + BULK] = {"bulk", "packets of mail and file transfers"},
	[OF_CLASS + MANAGEMENT] = {"management", "packets of network control"},
};

/* RFC 4594, figure 3, in the upper six bits of the type of service. */
static const uint8_t codepoints[CLASSES] = {
	[STANDARD] = 0 << 2,     [TELEPHONY] = 46 << 2, [SIGNALING] = 40 << 2,
	[LOW_LATENCY] = 18 << 2, [BULK] = 10 << 2,      [MANAGEMENT] = 16 << 2,
};

#define ANY_PROTOCOL 0

static const struct {
	uint8_t protocol;
	uint16_t low, high; /* of either end */
	enum service service;
} services[] = {
	{ANY_PROTOCOL, 5060, 5061, SIGNALING},
	{ANY_PROTOCOL, 53, 53, MANAGEMENT},
	{ANY_PROTOCOL, 161, 162, MANAGEMENT},
	{IPPROTO_UDP, 123, 123, MANAGEMENT},
	{IPPROTO_TCP, 22, 23, MANAGEMENT},
	{ANY_PROTOCOL, 443, 443, LOW_LATENCY},
	{IPPROTO_TCP, 80, 80, LOW_LATENCY},
	{IPPROTO_TCP, 8080, 8080, LOW_LATENCY},
	{IPPROTO_TCP, 20, 21, BULK},
	{IPPROTO_TCP, 25, 25, BULK},
	{IPPROTO_TCP, 110, 110, BULK},
	{IPPROTO_TCP, 143, 143, BULK},
	{IPPROTO_TCP, 873, 873, BULK},
	{IPPROTO_TCP, 993, 995, BULK},
	{IPPROTO_UDP, 16384, 32767, TELEPHONY},
};

static bool is_of(const struct flow_key *key, unsigned int i)
{
	const uint16_t source = rte_be_to_cpu_16(key->source_port);
	const uint16_t destination = rte_be_to_cpu_16(key->destination_port);
	const uint16_t low = services[i].low, high = services[i].high;

	if (services[i].protocol != ANY_PROTOCOL && services[i].protocol != key->protocol)
		return false;
	return (source >= low && source <= high) || (destination >= low && destination <= high);
}

static enum service service_of(const struct flow_key *key)
{
	if (key->protocol == (key->family == FLOW_IPV6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return MANAGEMENT;
	if (key->protocol != IPPROTO_UDP && key->protocol != IPPROTO_TCP)
		return STANDARD;
	for (unsigned int i = 0; i < RTE_DIM(services); i++)
		if (is_of(key, i))
			return services[i].service;
	return STANDARD;
}

/* Set a packet's codepoint; its ECN bits stay. */
static inline void mark(struct rte_ipv4_hdr *ip, uint8_t codepoint)
{
	const uint8_t service = codepoint | (ip->type_of_service & RTE_IPV4_HDR_ECN_MASK);
	const uint16_t version = (uint16_t)(ip->version_ihl << 8);

	/* also when it is unchanged: a branch would be unpredictable */
	ip->hdr_checksum =
		checksum_changed(ip->hdr_checksum, rte_cpu_to_be_16(version | ip->type_of_service),
				 rte_cpu_to_be_16(version | service));
	ip->type_of_service = service;
}

/* The same in the traffic class of IPv6, which no checksum covers. */
static void mark_ipv6(struct rte_ipv6_hdr *ip, uint8_t codepoint)
{
	ip->vtc_flow &= rte_cpu_to_be_32(~(0xfcu << RTE_IPV6_HDR_TC_SHIFT));
	ip->vtc_flow |= rte_cpu_to_be_32((uint32_t)codepoint << RTE_IPV6_HDR_TC_SHIFT);
}

/* The class of a packet's flow: the mark in the table is the class plus one. */
static inline enum service service_in(const struct flow_table *table, int32_t place,
				      const struct flow_key *key)
{
	uint64_t *mark;

	if (unlikely(place < 0))
		return service_of(key);
	mark = &flow_table_at(table, place)->mark;
	if (unlikely(*mark == 0))
		*mark = service_of(key) + 1;
	return (enum service)(*mark - 1);
}

struct marking {
	const struct flow_table *table;
	bool enabled;
	uint16_t packets[CLASSES];
};

static inline void classify(void *context, const struct flow_burst *burst, uint16_t i,
			    int32_t place)
{
	struct marking *marking = context;
	const enum service service = service_in(marking->table, place, &burst->keys[i]);

	marking->packets[service]++;
	if (marking->enabled && unlikely(burst->keys[i].family == FLOW_IPV6))
		mark_ipv6(rte_pktmbuf_mtod_offset(burst->packets[i], struct rte_ipv6_hdr *,
						  burst->l3[i]),
			  codepoints[service]);
	else if (marking->enabled)
		mark(rte_pktmbuf_mtod_offset(burst->packets[i], struct rte_ipv4_hdr *,
					     burst->l3[i]),
		     codepoints[service]);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_table *table = nf->state;
	struct marking marking;
	struct flow_burst burst;
	int32_t places[NF_BURST];

	flow_table_age(table, nf);
	flow_table_read(table, &burst, nf, OTHER, packets, n, out);
	if (unlikely(burst.n == 0))
		return;
	marking = (struct marking){.table = table, .enabled = nf->settings[MARK] == 1};
	flow_table_count_each(table, nf, &burst, places, out, classify, &marking);
	for (int service = 0; service < CLASSES; service++)
		nf->counters[OF_CLASS + service] += marking.packets[service];
}

NF_KIND("FlowClassifier", "assigns flows to service classes and marks their packets",
	.state_bytes = sizeof(struct flow_table), .create = flow_table_make, .process = process,
	.destroy = flow_table_end)
