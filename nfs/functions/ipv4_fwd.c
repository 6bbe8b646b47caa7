/*
 * IPv4Fwd: forwards IPv4 by longest prefix match, as a switch does: the destination chooses the
 * next hop, the addresses of the frame change, the time to live is one less.
 *
 * That is all: a packet that expires, or has no route, is freed without an ICMP error, no address
 * is special, and header checksums are updated (RFC 1624), not checked. So every platform of a rack
 * can do the same, byte for byte; IPRouter is the router of RFC 1812.
 *
 * Hop number H has the MAC address 02:00:00:01:00:H; the source becomes 02:00:00:00:00:01. Routes
 * are generated from a seed, with a default route to hop 0, or read from a file (tables/routes.h),
 * whose routes are counted by their number. The table is a DIR-24-8 of rte_fib; an entry holds the
 * hop in its lowest byte, and the number of the route above, 1 for generated ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/ipv4.h"
#include "core/memory.h"
#include "core/nf.h"
#include "tables/fib.h"

enum { ROUTES, SEED, HOPS, FILE_OF_ROUTES, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[ROUTES] = {"routes", "prefixes in the table, besides the default one", 0, 1000000, 64},
	[SEED] = {"seed", "seed of the routes", 0, 4294967295, 1},
	[HOPS] = {"hops", "next hops", 1, 256, 256},
	[FILE_OF_ROUTES] = {"file",
			    "file with the routes, in place of those of routes and seed; none if "
			    "empty",
			    .text = ""},
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "drop"),
};

enum { FORWARDED, EXPIRED, UNROUTABLE, OTHER };
static const struct nf_counter counters[] = {
	[FORWARDED] = {"forwarded", "packets sent to a next hop"},
	[EXPIRED] = {"expired", "packets with an expired time to live, freed"},
	[UNROUTABLE] = {"unroutable", "packets without a route, freed"},
	NF_OTHER_COUNTERS(OTHER),
};

#define NO_ROUTE 0
#define NUMBER_SHIFT 8
#define LARGEST_OF_2B 0x7fff

/*
 * Groups of 256 addresses, one for each prefix longer than /24 at worst; entries of 2 bytes, which
 * make a table of 32 MB, have numbers below 128, and count up to LARGEST_OF_2B groups.
 */
static struct rte_fib_conf conf_of(const struct route *routes, uint32_t n)
{
	uint32_t groups = 1, largest = 0;

	for (uint32_t i = 0; i < n; i++) {
		groups += routes[i].depth > 24;
		largest = RTE_MAX(largest, routes[i].hop);
	}
	return (struct rte_fib_conf){
		.type = RTE_FIB_DIR24_8,
		.default_nh = NO_ROUTE,
		.max_routes = (int)n + 2,
		.dir24_8 = {.nh_sz = RTE_MAX(groups, largest) < LARGEST_OF_2B ? RTE_FIB_DIR24_8_2B
									      : RTE_FIB_DIR24_8_4B,
			    .num_tbl8 = groups},
	};
}

static int fill(struct rte_fib *table, const struct route *routes, uint32_t n, bool generated)
{
	int result = generated ? rte_fib_add(table, 0, 0, 1 << NUMBER_SHIFT) : 0;

	for (uint8_t depth = 0; depth <= 32 && result == 0; depth++)
		result = fib_add_depth(table, routes, n, depth);
	return result;
}

static struct rte_fib *table_of(const struct nf *nf, const struct route *routes, uint32_t n)
{
	static unsigned int n_created;
	struct rte_fib_conf conf = conf_of(routes, n);
	struct rte_fib *table;
	char name[32];

	snprintf(name, sizeof(name), "ipv4_fwd_%u",
		 __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	table = rte_fib_create(name, nf->socket, &conf);
	if (table && fill(table, routes, n, !*nf->texts[FILE_OF_ROUTES]) == 0)
		return table;
	fprintf(stderr, "IPv4Fwd: no memory for a table of %u routes\n", n);
	rte_fib_free(table);
	return NULL;
}

static struct route *make_routes(const struct nf *nf, uint32_t *n)
{
	const struct routes_limits limits = {.of = nf->kind->name,
					     .hops = (uint32_t)nf->settings[HOPS]};

	if (*nf->texts[FILE_OF_ROUTES])
		return routes_read(nf->texts[FILE_OF_ROUTES], &limits, n);
	*n = (uint32_t)nf->settings[ROUTES];
	return routes_generate(limits.of, *n, (uint64_t)nf->settings[SEED], limits.hops);
}

static int create(struct nf *nf)
{
	uint32_t n = 0;
	struct route *routes = make_routes(nf, &n);

	if (!routes)
		return -EINVAL;
	nf->n_rules = *nf->texts[FILE_OF_ROUTES] ? n : 0;
	for (uint32_t i = 0; i < n; i++)
		routes[i].hop |= RTE_MAX(routes[i].number, 1U) << NUMBER_SHIFT;
	nf->state = table_of(nf, routes, n);
	free(routes);
	return nf->state ? 0 : -ENOMEM;
}

static void destroy(struct nf *nf)
{
	rte_fib_free(nf->state);
}

/* Send a packet to its next hop. Returns the counter of what became of it. */
static inline int forward(struct rte_mbuf *mbuf, uint16_t l3, uint64_t hop)
{
	static const struct rte_ether_addr own = {{0x02, 0, 0, 0, 0, 0x01}};
	struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, l3);

	if (unlikely(hop == NO_ROUTE))
		return UNROUTABLE;
	if (unlikely(ip->time_to_live <= 1))
		return EXPIRED;
	ipv4_hop(ip);
	ethernet->src_addr = own;
	ethernet->dst_addr = (struct rte_ether_addr){{0x02, 0, 0, 0x01, 0, (uint8_t)hop}};
	return FORWARDED;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	uint16_t l3[NF_BURST], n_ipv4 = 0;
	uint32_t addresses[NF_BURST];
	uint64_t hops[NF_BURST];

	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_headers(packets[i]);

		if (unlikely(!packet_has_ipv4(&packet))) {
			nf_other(nf, packets[i], packet.type, OTHER, out);
			continue;
		}
		l3[n_ipv4] = packet.l3;
		addresses[n_ipv4] = rte_be_to_cpu_32(packet_ipv4(packets[i], &packet)->dst_addr);
		packets[n_ipv4++] = packets[i];
	}
	if (n_ipv4 > 0)
		rte_fib_lookup_bulk(nf->state, addresses, hops, n_ipv4);
	for (uint16_t i = 0; i < n_ipv4; i++) {
		const int result = forward(packets[i], l3[i], hops[i]);

		nf->counters[result]++;
		if (unlikely(result != FORWARDED)) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		if (nf->rule_counts)
			nf->rule_counts[(hops[i] >> NUMBER_SHIFT) - 1]++;
		nf_send(out, packets[i]);
	}
}

NF_KIND("IPv4Fwd", "forwards IPv4 to next hops, as a switch does", .create = create,
	.process = process, .destroy = destroy)
