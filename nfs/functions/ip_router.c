/*
 * IPRouter: forwards IPv4 by longest prefix match (RFC 1812).
 *
 * The table is a DIR-24-8 of rte_fib; its routes are generated from a seed, or read from a file
 * (tables/routes.h), which then has the default route, too. rte_lpm has the same lookup, but scans
 * all rules of a depth to add one: half a million routes take 13 s, with rte_fib less than one.
 *
 * Not implemented: packets to the router itself (freed, counted), IPv4 options (forwarded unread),
 * multicast routing, ARP (next hops are known).
 */
#include <errno.h>
#include <stdlib.h>

#include "core/icmp_report.h"
#include "core/ipv4.h"
#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"
#include "functions/ip_router/table.h"

enum {
	ROUTES,
	SEED,
	HOPS,
	PORTS,
	DEFAULT_ROUTE,
	FILE_OF_ROUTES,
	ADDRESS,
	ERRORS, /* ICMP_REPORT_PARAMETERS from here */
	UNKNOWN = ERRORS + 2,
};
static const struct nf_parameter parameters[] = {
	[ROUTES] = {"routes", "prefixes in the table, besides the default one", 0, 1000000, 500000},
	[SEED] = {"seed", "seed of the routes", 0, 4294967295, 1},
	[HOPS] = {"hops", "next hops", 1, 256, 64},
	[PORTS] = {"ports",
		   "numbered gates, to which next hops are dealt out; 1: packets go forward", 1,
		   NF_MOST_BRANCHES, 1},
	[DEFAULT_ROUTE] = {"default_route",
			   "1: packets without a matching prefix go to the first hop", 0, 1, 1},
	[FILE_OF_ROUTES] = {"file",
			    "file with the routes, in place of those of routes, seed and "
			    "default_route; none if empty",
			    .text = ""},
	[ADDRESS] = {"address", "the router's address, as a number; 192.0.2.254", 0, 4294967295,
		     RTE_IPV4(192, 0, 2, 254)},
	ICMP_REPORT_PARAMETERS(ERRORS),
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "drop"),
};

enum {
	FORWARDED,
	EXPIRED,
	UNROUTABLE,
	MARTIAN,
	MULTICAST,
	LOCAL,
	BAD_CHECKSUM,
	OTHER, /* NF_OTHER_COUNTERS from here */
	MALFORMED = OTHER + 2,
	ERRORS_SENT, /* ICMP_REPORT_COUNTERS from here */
};
static const struct nf_counter counters[] = {
	[FORWARDED] = {"forwarded", "packets sent to a next hop"},
	[EXPIRED] = {"expired", "packets with an expired time to live"},
	[UNROUTABLE] = {"unroutable", "packets without a route"},
	[MARTIAN] = {"martian", "packets from or to an address that is not a host's, freed"},
	[MULTICAST] = {"multicast", "multicast and broadcast packets, freed"},
	[LOCAL] = {"local", "packets to the router itself, freed"},
	[BAD_CHECKSUM] = {"bad_checksum", "packets with a wrong header checksum, freed"},
	NF_OTHER_COUNTERS(OTHER),
	ICMP_REPORT_COUNTERS(ERRORS_SENT),
};

struct hop {
	struct rte_ether_addr address;
	uint8_t gate;
};

struct ip_router {
	struct rte_fib *table; /* maps an address to an index of `hops` */
	struct hop *hops;
	struct rte_ether_addr own;
	struct icmp_reporter reporter;
};

static void fill_hops(struct hop *hops, uint32_t n, uint32_t ports)
{
	for (uint32_t i = 0; i < n; i++)
		hops[i] = (struct hop){
			.address = {{0x02, 0, 0, 1, 0, (uint8_t)i}},
			.gate = (uint8_t)(ports == 1 ? NF_FORWARD : NF_BRANCH + i % ports),
		};
}

static struct route *make_routes(const struct nf *nf, uint32_t *n)
{
	const struct routes_limits limits = {
		.of = nf->kind->name,
		.hops = (uint32_t)nf->settings[HOPS],
		.own = (uint32_t)nf->settings[ADDRESS],
	};

	if (*nf->texts[FILE_OF_ROUTES])
		return routes_read(nf->texts[FILE_OF_ROUTES], &limits, n);
	*n = (uint32_t)nf->settings[ROUTES];
	return routes_generate(limits.of, *n, (uint64_t)nf->settings[SEED], limits.hops);
}

static struct rte_fib *make_table(const struct nf *nf)
{
	struct router_table of = {
		.default_route = nf->settings[DEFAULT_ROUTE] == 1 && !*nf->texts[FILE_OF_ROUTES],
		.own = (uint32_t)nf->settings[ADDRESS],
		.socket = nf->socket,
	};
	struct route *routes = make_routes(nf, &of.n);
	struct rte_fib *table;

	of.routes = routes;
	table = routes ? router_table_create(&of) : NULL;
	free(routes);
	return table;
}

static void destroy(struct nf *nf)
{
	struct ip_router *router = nf->state;

	rte_fib_free(router->table);
	nf_free(router->hops);
}

static int create(struct nf *nf)
{
	struct ip_router *router = nf->state;
	const uint32_t hops = (uint32_t)nf->settings[HOPS];

	router->own = (struct rte_ether_addr){{0x02, 0, 0, 0, 0, 0x01}};
	router->reporter = icmp_reporter_for(rte_cpu_to_be_32((uint32_t)nf->settings[ADDRESS]),
					     nf->spare, &nf->settings[ERRORS]);
	router->hops = nf_zalloc_for(nf->kind->name, hops * sizeof(*router->hops));
	router->table = router->hops ? make_table(nf) : NULL;
	if (!router->table)
		return -ENOMEM;
	fill_hops(router->hops, hops, (uint32_t)nf->settings[PORTS]);
	return 0;
}

/* The counter of an IPv4 packet that is not looked up; FORWARDED if it is. */
static inline int reject_reason(const struct rte_ether_hdr *ethernet, const struct rte_ipv4_hdr *ip)
{
	if (unlikely(!ipv4_checksum_is_right(ip)))
		return BAD_CHECKSUM;
	if (unlikely(rte_is_multicast_ether_addr(&ethernet->dst_addr)))
		return MULTICAST;
	return likely(ipv4_is_routed(ip->src_addr)) ? FORWARDED : MARTIAN;
}

/* The same for any packet; also returns where its IPv4 header is. */
static int reject_reason_of_any(struct rte_mbuf *mbuf, uint16_t *l3)
{
	const struct packet packet = packet_parse_any(mbuf);

	*l3 = packet.l3;
	if (!packet_has_ipv4(&packet))
		return OTHER; /* or malformed, as nf_other() finds */
	return reject_reason(rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *),
			     packet_ipv4(mbuf, &packet));
}

/* Free a packet that cannot be forwarded, and send an ICMP error about it. */
static void free_and_report(struct nf *nf, struct rte_mbuf *mbuf, enum icmp_problem problem,
			    struct nf_out *out)
{
	const struct packet packet = packet_parse_any(mbuf);
	struct ip_router *router = nf->state;

	icmp_report_problem(&router->reporter, mbuf, &packet, problem, 0, nf->now_us,
			    &nf->counters[ERRORS_SENT], out);
	rte_pktmbuf_free(mbuf);
}

/* Handle a packet that is not forwarded, because of its destination or time to live. */
static void stop(struct nf *nf, struct rte_mbuf *mbuf, uint64_t hop, struct nf_out *out)
{
	static const int counted[] = {LOCAL, MULTICAST, MARTIAN, UNROUTABLE};
	const bool reported = hop == NO_ROUTE || hop < TO_ITSELF;

	if (hop < TO_ITSELF)
		nf->counters[EXPIRED]++;
	else
		nf->counters[counted[hop - TO_ITSELF]]++;
	if (reported)
		free_and_report(nf, mbuf,
				hop == NO_ROUTE ? ICMP_NET_UNREACHABLE : ICMP_TTL_EXCEEDED, out);
	else
		rte_pktmbuf_free(mbuf);
}

/* Forward a burst of packets with IPv4 headers at `l3`; modifies `packets`. */
static void forward(struct nf *nf, struct rte_mbuf **packets, const uint16_t *l3,
		    const uint64_t *hops, uint16_t n, struct nf_out *out)
{
	const struct ip_router *router = nf->state;
	uint16_t forwarded = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_ether_hdr *ethernet =
			rte_pktmbuf_mtod(packets[i], struct rte_ether_hdr *);
		struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(packets[i], struct rte_ipv4_hdr *, l3[i]);
		const struct hop *hop = &router->hops[hops[i]];

		if (unlikely(ip->time_to_live <= 1 || hops[i] >= TO_ITSELF)) {
			stop(nf, packets[i], hops[i], out);
			continue;
		}
		ipv4_hop(ip);
		ethernet->src_addr = router->own;
		ethernet->dst_addr = hop->address;
		metadata_of(packets[i])->gate = hop->gate;
		packets[forwarded++] = packets[i];
	}
	nf_send_bulk(out, packets, forwarded);
	nf->counters[FORWARDED] += forwarded;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct ip_router *router = nf->state;
	struct rte_mbuf *forwarded[NF_BURST];
	uint16_t l3[NF_BURST], n_forwarded = 0;
	uint32_t addresses[NF_BURST];
	uint64_t hops[NF_BURST];

	for (uint16_t i = 0; i < n; i++) {
		const struct rte_ether_hdr *ethernet =
			rte_pktmbuf_mtod(packets[i], const struct rte_ether_hdr *);
		int reason;

		l3[n_forwarded] = sizeof(*ethernet);
		if (likely(packet_is_plain_ipv4(packets[i])))
			reason = reject_reason(ethernet,
					       (const struct rte_ipv4_hdr *)(ethernet + 1));
		else
			reason = reject_reason_of_any(packets[i], &l3[n_forwarded]);
		if (unlikely(reason != FORWARDED)) {
			if (reason != OTHER) {
				nf_drop(nf, packets[i], reason);
				continue;
			}
			if (nf->settings[PORTS] > 1) /* nothing is behind the gate forward */
				packet_branch(packets[i], 0);
			nf_other(nf, packets[i], packet_parse_any(packets[i]).type, OTHER, out);
			continue;
		}
		addresses[n_forwarded] = rte_be_to_cpu_32(
			rte_pktmbuf_mtod_offset(packets[i], const struct rte_ipv4_hdr *,
						l3[n_forwarded])
				->dst_addr);
		forwarded[n_forwarded++] = packets[i];
	}
	if (likely(n_forwarded > 0))
		rte_fib_lookup_bulk(router->table, addresses, hops, n_forwarded);
	forward(nf, forwarded, l3, hops, n_forwarded, out);
}

static unsigned int branches(const struct nf *nf)
{
	return nf->settings[PORTS] > 1 ? (unsigned int)nf->settings[PORTS] : 0;
}

NF_KIND("IPRouter", "forwards IPv4 by longest prefix match",
	.state_bytes = sizeof(struct ip_router), .create = create, .process = process,
	.branches = branches, .destroy = destroy)
