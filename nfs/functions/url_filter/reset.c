#include "functions/url_filter/reset.h"

#include "core/nf.h"

#define TTL 64 /* of resets */

/* Write an IPv4 header for a segment without payload, and its TCP checksum. */
static void put_ipv4(struct rte_mbuf *made, struct rte_mbuf *about, const struct packet *packet,
		     bool back)
{
	const struct rte_ipv4_hdr *of = packet_ipv4(about, packet);
	struct rte_ipv4_hdr *ip = packet_ipv4(made, packet);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = RTE_BE16(sizeof(*ip) + sizeof(*tcp)),
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = TTL,
		.next_proto_id = IPPROTO_TCP,
		.src_addr = back ? of->dst_addr : of->src_addr,
		.dst_addr = back ? of->src_addr : of->dst_addr,
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
}

/* The same of IPv6. */
static void put_ipv6(struct rte_mbuf *made, const struct rte_mbuf *about,
		     const struct packet *packet, bool back)
{
	const struct rte_ipv6_hdr *of = packet_ipv6(about, packet);
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(made, struct rte_ipv6_hdr *, packet->l3);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	*ip = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = RTE_BE16(sizeof(*tcp)),
		.proto = IPPROTO_TCP,
		.hop_limits = TTL,
	};
	memcpy(ip->src_addr, back ? of->dst_addr : of->src_addr, sizeof(ip->src_addr));
	memcpy(ip->dst_addr, back ? of->src_addr : of->dst_addr, sizeof(ip->dst_addr));
	tcp->cksum = rte_ipv6_udptcp_cksum(ip, tcp);
}

struct rte_mbuf *tcp_reset(struct rte_mempool *pool, struct rte_mbuf *about,
			   const struct packet *packet, bool back)
{
	const struct rte_tcp_hdr *of =
		rte_pktmbuf_mtod_offset(about, const struct rte_tcp_hdr *, packet->l4);
	const bool ipv6 = packet->type == PACKET_IPV6;
	const uint16_t l4 =
		packet->l3 + (ipv6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr));
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;
	struct rte_ether_hdr *ethernet;
	struct rte_tcp_hdr *tcp;

	if (!made)
		return NULL;
	ethernet = (struct rte_ether_hdr *)rte_pktmbuf_append(made, l4 + sizeof(*tcp));
	memcpy(ethernet, rte_pktmbuf_mtod(about, void *), packet->l3);
	tcp = rte_pktmbuf_mtod_offset(made, struct rte_tcp_hdr *, l4);
	*tcp = (struct rte_tcp_hdr){
		.src_port = back ? of->dst_port : of->src_port,
		.dst_port = back ? of->src_port : of->dst_port,
		.sent_seq = back ? of->recv_ack : of->sent_seq,
		.data_off = (sizeof(*tcp) / 4) << 4,
		.tcp_flags = RTE_TCP_RST_FLAG,
	};
	if (back && !(of->tcp_flags & RTE_TCP_ACK_FLAG)) {
		tcp->sent_seq = 0;
		tcp->recv_ack =
			rte_cpu_to_be_32(rte_be_to_cpu_32(of->sent_seq) + packet->payload_length +
					 !!(of->tcp_flags & RTE_TCP_SYN_FLAG) +
					 !!(of->tcp_flags & RTE_TCP_FIN_FLAG));
		tcp->tcp_flags |= RTE_TCP_ACK_FLAG;
	}
	if (ipv6)
		put_ipv6(made, about, packet, back);
	else
		put_ipv4(made, about, packet, back);
	metadata_inherit(made, about);
	if (back) {
		const struct rte_ether_addr source = ethernet->src_addr;

		ethernet->src_addr = ethernet->dst_addr;
		ethernet->dst_addr = source;
		packet_send_back(made);
	}
	return made;
}
