#include <rte_fib.h>

#include "core/ipv4.h"
#include "core/packet.h"
#include "cycles/peer.h"
#include "tables/routes.h"

#define ROUTES 64
#define HOPS 256
#define NO_ROUTE 0x7fff

static void *create(void)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = NO_ROUTE,
		.max_routes = ROUTES + 2,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = ROUTES + 1},
	};
	struct rte_fib *table = rte_fib_create("plain_ipv4_fwd", SOCKET_ID_ANY, &conf);
	struct routes routes = {.random = 1, .hops = HOPS};

	if (table && rte_fib_add(table, 0, 0, 0) < 0)
		return NULL;
	for (uint32_t i = 0; table && i < ROUTES; i++) {
		const struct route route = routes_next(&routes);

		if (rte_fib_add(table, route.prefix, route.depth, route.hop) < 0)
			return NULL;
	}
	return table;
}

static void process(void *table, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	static const struct rte_ether_addr own = {{0x02, 0, 0, 0, 0, 0x01}};
	uint32_t addresses[NF_BURST];
	uint64_t hops[NF_BURST];

	for (uint16_t i = 0; i < n; i++)
		addresses[i] = rte_be_to_cpu_32(
			rte_pktmbuf_mtod_offset(packets[i], struct rte_ipv4_hdr *,
						sizeof(struct rte_ether_hdr))
				->dst_addr);
	rte_fib_lookup_bulk(table, addresses, hops, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_ether_hdr *ethernet =
			rte_pktmbuf_mtod(packets[i], struct rte_ether_hdr *);
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ethernet + 1);

		if (hops[i] == NO_ROUTE || ip->time_to_live <= 1) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		ipv4_hop(ip);
		ethernet->src_addr = own;
		ethernet->dst_addr =
			(struct rte_ether_addr){{0x02, 0, 0, 0x01, 0, (uint8_t)hops[i]}};
		nf_send(out, packets[i]);
	}
}

static void destroy(void *table)
{
	rte_fib_free(table);
}

PLAIN_PEER("IPv4Fwd", "rte_fib_lookup_bulk, time to live, addresses")
