#include <rte_ip_frag.h>

#include "core/ipv4.h"
#include "core/memory.h"
#include "core/packet.h"
#include "cycles/peer.h"

#define MTU 1500
#define MOST_FRAGMENTS 4

struct tunnel {
	struct rte_mempool *pool;
	uint16_t id;
};

static void *create(void)
{
	struct tunnel *state = nf_zalloc(sizeof(*state));

	state->pool = rte_pktmbuf_pool_create("plain_ip_tunnel", 8191, 256, 0,
					      RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return state->pool ? state : NULL;
}

static void encapsulate(struct tunnel *state, struct rte_mbuf *datagram,
			const struct rte_ether_hdr *ethernet, struct nf_out *out)
{
	const uint16_t inside = rte_pktmbuf_data_len(datagram);
	struct rte_ether_hdr *front = (struct rte_ether_hdr *)rte_pktmbuf_prepend(
		datagram, sizeof(*front) + sizeof(struct rte_ipv4_hdr));
	struct rte_ipv4_hdr *outer = (struct rte_ipv4_hdr *)(front + 1);

	*front = *ethernet;
	*outer = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(sizeof(*outer) + inside),
		.packet_id = rte_cpu_to_be_16(state->id++),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_IPIP,
		.src_addr = RTE_BE32(RTE_IPV4(192, 0, 2, 1)),
		.dst_addr = RTE_BE32(RTE_IPV4(192, 0, 2, 2)),
	};
	outer->hdr_checksum = rte_ipv4_cksum(outer);
	nf_send(out, datagram);
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct tunnel *state = of;

	for (uint16_t i = 0; i < n; i++) {
		const struct rte_ether_hdr ethernet =
			*rte_pktmbuf_mtod(packets[i], struct rte_ether_hdr *);
		struct rte_mbuf *fragments[MOST_FRAGMENTS];
		struct rte_ipv4_hdr *ip =
			(struct rte_ipv4_hdr *)rte_pktmbuf_adj(packets[i], sizeof(ethernet));
		int32_t packet_spec;

		if (rte_raw_cksum(ip, sizeof(*ip)) != 0xffff || ip->time_to_live <= 1) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		ipv4_hop(ip);
		if (rte_pktmbuf_pkt_len(packets[i]) <= MTU - sizeof(*ip)) {
			encapsulate(state, packets[i], &ethernet, out);
			continue;
		}
		packet_spec = rte_ipv4_fragment_copy_nonseg_packet(
			packets[i], fragments, MOST_FRAGMENTS, MTU - sizeof(*ip), state->pool);
		rte_pktmbuf_free(packets[i]);
		for (int32_t j = 0; j < packet_spec; j++) {
			struct rte_ipv4_hdr *part =
				rte_pktmbuf_mtod(fragments[j], struct rte_ipv4_hdr *);

			part->hdr_checksum = rte_ipv4_cksum(part);
			encapsulate(state, fragments[j], &ethernet, out);
		}
	}
}

static void destroy(void *of)
{
	struct tunnel *state = of;

	rte_mempool_free(state->pool);
	nf_free(state);
}

PLAIN_PEER("IPTunnel", "rte_ipv4_fragment_copy_nonseg_packet, outer headers")
