#include "functions/ip_tunnel/errors.h"

#include "core/ipv4.h"
#include "core/rewrite.h"

#define LEAST_MTU 68 /* of IPv4 (RFC 791) */
#define QUOTED_LEAST 8
#define OUTER sizeof(struct rte_ipv4_hdr)

enum { UNREACHABLE = 3, TIME_EXCEEDED = 11 };

/* The MTU within the tunnel, after an error that a packet of `length` bytes is too big. */
static uint16_t inner_mtu(uint16_t mtu, uint16_t length)
{
	/* MTUs of links, for routers that name none (RFC 1191, section 7.1) */
	static const uint16_t plateaus[] = {8166, 4352, 2002, 1492, 1006, 508, 296, LEAST_MTU};

	for (size_t i = 0; mtu == 0 && i < RTE_DIM(plateaus); i++)
		if (plateaus[i] < length)
			mtu = plateaus[i];
	return mtu > LEAST_MTU + OUTER ? mtu - OUTER : LEAST_MTU;
}

/* What the sender of a packet gets about an error; false if nothing. */
static bool problem_of(uint8_t type, uint8_t code, enum icmp_problem *problem)
{
	if (type == TIME_EXCEEDED) { /* section 4.4 */
		*problem = ICMP_HOST_UNREACHABLE;
		return true;
	}
	if (type != UNREACHABLE)
		return false;
	switch (code) { /* section 4.1; RFC 1812, section 5.2.7.1 */
	case 0:
	case 2: /* of protocol 4, which the sender does not know of */
	case 6:
	case 9:
	case 11:
		*problem = ICMP_NET_UNREACHABLE;
		return true;
	case 3: /* a port, which outer headers do not have */
	case 5: /* a source route, neither */
		return false;
	case 4:
		*problem = ICMP_FRAGMENTATION_NEEDED;
		return true;
	default:
		*problem = ICMP_HOST_UNREACHABLE;
		return true;
	}
}

/* The packet in the tunnel's that an error quotes; false if too little of it is there. */
static bool inner_quoted(struct rte_mbuf *mbuf, const struct packet *outer, struct packet *inner)
{
	const uint16_t here = outer->payload - outer->l4;
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, outer->l4);
	uint16_t header;

	if (here < sizeof(*ip) || ip->version_ihl >> 4 != 4)
		return false;
	header = rte_ipv4_hdr_len(ip);
	if (header < sizeof(*ip) || here < header + QUOTED_LEAST || !ipv4_checksum_is_right(ip))
		return false;
	*inner = (struct packet){
		.type = PACKET_IPV4,
		.l3 = outer->l4,
		.l4 = outer->l4 + header,
		.payload = outer->payload,
		.protocol = ip->next_proto_id,
		.non_initial_fragment =
			(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) != 0,
	};
	return true;
}

bool tunnel_error_read(struct rte_mbuf *mbuf, const struct packet *packet, rte_be32_t local,
		       rte_be32_t remote, struct tunnel_error *error)
{
	const struct rte_ipv4_hdr *ip;
	const uint8_t *icmp;
	struct packet quoted;

	if (packet->l4 == 0 || packet->fragment || packet_ipv4(mbuf, packet)->dst_addr != local ||
	    !icmp_is_error(icmp_type(mbuf, packet)) || !quoted_packet(mbuf, packet, &quoted))
		return false;
	ip = packet_ipv4(mbuf, &quoted);
	if (ip->next_proto_id != IPPROTO_IPIP || ip->src_addr != local || ip->dst_addr != remote)
		return false;
	icmp = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, packet->l4);
	*error = (struct tunnel_error){0};
	error->is_relayed = problem_of(icmp[0], icmp[1], &error->problem);
	if (error->is_relayed && error->problem == ICMP_FRAGMENTATION_NEEDED)
		error->mtu = inner_mtu((uint16_t)(icmp[6] << 8 | icmp[7]),
				       rte_be_to_cpu_16(ip->total_length));
	error->has_inner = inner_quoted(mbuf, &quoted, &error->inner);
	return true;
}
