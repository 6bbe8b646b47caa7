#include <rte_fib.h>

#include "core/ipv4.h"
#include "core/memory.h"
#include "core/packet.h"
#include "cycles/peer.h"
#include "tables/routes.h"

#define ROUTES 500000
#define HOPS 64

struct router {
	struct rte_fib *table;
	struct rte_ether_addr own;
	struct {
		struct rte_ether_addr address;
	} hops[HOPS];
};

static void *create(void)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = ROUTES + 2,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = ROUTES / 40 + 256},
	};
	struct routes routes = {.random = 1, .hops = HOPS};
	struct router *state = nf_zalloc(sizeof(*state));

	state->table = rte_fib_create("plain_ip_router", SOCKET_ID_ANY, &conf);
	for (uint32_t i = 0; state->table && i < ROUTES; i++) {
		const struct route route = routes_next(&routes);

		if (rte_fib_add(state->table, route.prefix, route.depth, route.hop) < 0)
			return NULL;
	}
	return state->table ? state : NULL;
}

/* The header checks of RFC 1812, section 5.2.2. */
static inline bool sound(const struct rte_mbuf *packet, const struct rte_ipv4_hdr *ip)
{
	const uint16_t total = rte_be_to_cpu_16(ip->total_length);

	return rte_pktmbuf_data_len(packet) >= sizeof(struct rte_ether_hdr) + sizeof(*ip) &&
	       ip->version_ihl == RTE_IPV4_VHL_DEF && total >= sizeof(*ip) &&
	       sizeof(struct rte_ether_hdr) + total <= rte_pktmbuf_pkt_len(packet) &&
	       rte_raw_cksum(ip, sizeof(*ip)) == 0xffff;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct router *state = of;
	struct rte_mbuf *kept[NF_BURST];
	uint32_t addresses[NF_BURST];
	uint64_t hops[NF_BURST];
	uint16_t n_kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(
			packets[i], const struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));

		if (!sound(packets[i], ip) || ip->time_to_live <= 1) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		addresses[n_kept] = rte_be_to_cpu_32(ip->dst_addr);
		kept[n_kept++] = packets[i];
	}
	rte_fib_lookup_bulk(state->table, addresses, hops, n_kept);
	for (uint16_t i = 0; i < n_kept; i++) {
		struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(kept[i], struct rte_ether_hdr *);
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ethernet + 1);

		ipv4_hop(ip);
		ethernet->src_addr = state->own;
		ethernet->dst_addr = state->hops[hops[i]].address;
		nf_send(out, kept[i]);
	}
}

static void destroy(void *of)
{
	struct router *state = of;

	rte_fib_free(state->table);
	nf_free(state);
}

PLAIN_PEER("IPRouter", "rte_fib_lookup_bulk, the checks of RFC 1812, time to live, addresses")
