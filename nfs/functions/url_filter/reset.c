#include "functions/url_filter/reset.h"

#define TTL 64

/* A copy of the Ethernet header and tags of `about`, and a TCP segment with the rest of them. */
static struct rte_mbuf *segment(struct rte_mempool *pool, struct rte_mbuf *about,
				const struct packet *packet, const struct rte_tcp_hdr *tcp,
				bool back)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;
	const struct rte_ipv4_hdr *of = packet_ipv4(about, packet);
	struct rte_ether_hdr *ethernet;
	struct rte_ipv4_hdr *ip;

	if (!made)
		return NULL;
	ethernet = (struct rte_ether_hdr *)rte_pktmbuf_append(made, packet->l3 + sizeof(*ip) +
									    sizeof(*tcp));
	memcpy(ethernet, rte_pktmbuf_mtod(about, void *), packet->l3);
	ip = packet_ipv4(made, packet);
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
	*(struct rte_tcp_hdr *)(ip + 1) = *tcp;
	((struct rte_tcp_hdr *)(ip + 1))->cksum = rte_ipv4_udptcp_cksum(ip, ip + 1);
	metadata_inherit(made, about);
	if (back) {
		const struct rte_ether_addr source = ethernet->src_addr;

		ethernet->src_addr = ethernet->dst_addr;
		ethernet->dst_addr = source;
		packet_send_back(made);
	}
	return made;
}

static const struct rte_tcp_hdr *tcp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
}

struct rte_mbuf *reset_forward(struct rte_mempool *pool, struct rte_mbuf *about,
			       const struct packet *packet)
{
	const struct rte_tcp_hdr *of = tcp_of(about, packet);
	const struct rte_tcp_hdr tcp = {
		.src_port = of->src_port,
		.dst_port = of->dst_port,
		.sent_seq = of->sent_seq,
		.data_off = (sizeof(tcp) / 4) << 4,
		.tcp_flags = RTE_TCP_RST_FLAG,
	};

	return segment(pool, about, packet, &tcp, false);
}

struct rte_mbuf *reset_back(struct rte_mempool *pool, struct rte_mbuf *about,
			    const struct packet *packet)
{
	const struct rte_tcp_hdr *of = tcp_of(about, packet);
	struct rte_tcp_hdr tcp = {
		.src_port = of->dst_port,
		.dst_port = of->src_port,
		.sent_seq = of->recv_ack,
		.data_off = (sizeof(tcp) / 4) << 4,
		.tcp_flags = RTE_TCP_RST_FLAG,
	};

	if (!(of->tcp_flags & RTE_TCP_ACK_FLAG)) {
		tcp.sent_seq = 0;
		tcp.recv_ack =
			rte_cpu_to_be_32(rte_be_to_cpu_32(of->sent_seq) + packet->payload_length +
					 !!(of->tcp_flags & RTE_TCP_SYN_FLAG) +
					 !!(of->tcp_flags & RTE_TCP_FIN_FLAG));
		tcp.tcp_flags |= RTE_TCP_ACK_FLAG;
	}
	return segment(pool, about, packet, &tcp, true);
}
