#include "core/rewrite.h"

#include "core/ipv4.h"

#define QUOTED_LEAST 8 /* bytes behind a quoted IPv4 header that every error has (RFC 792) */

static rte_be16_t *port_field(struct rte_mbuf *mbuf, const struct packet *packet, enum end end)
{
	rte_be16_t *l4 = rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, packet->l4);

	if (packet->protocol == IPPROTO_ICMP)
		return l4 + 2;
	return end == END_SOURCE ? l4 : l4 + 1;
}

struct endpoint endpoint_of(struct rte_mbuf *mbuf, const struct packet *packet, enum end end)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);

	return (struct endpoint){
		.address = end == END_SOURCE ? ip->src_addr : ip->dst_addr,
		.port = *port_field(mbuf, packet, end),
	};
}

/* The checksum behind the IPv4 header; NULL if a quote ends before it. */
static rte_be16_t *l4_checksum(struct rte_mbuf *mbuf, const struct packet *packet)
{
	uint16_t at = packet->l4;

	switch (packet->protocol) {
	case IPPROTO_UDP:
		at += offsetof(struct rte_udp_hdr, dgram_cksum);
		break;
	case IPPROTO_TCP:
		at += offsetof(struct rte_tcp_hdr, cksum);
		break;
	default:
		at += offsetof(struct rte_icmp_hdr, icmp_cksum);
	}
	if (at + sizeof(rte_be16_t) > packet->payload)
		return NULL;
	return rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, at);
}

static void put_address(struct rte_ipv4_hdr *ip, enum end end, rte_be32_t to, uint32_t changes)
{
	ip->hdr_checksum = checksum_after(ip->hdr_checksum, changes);
	if (end == END_SOURCE)
		ip->src_addr = to;
	else
		ip->dst_addr = to;
}

void address_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		     rte_be32_t to)
{
	struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);

	put_address(ip, end, to,
		    address_change(end == END_SOURCE ? ip->src_addr : ip->dst_addr, to));
}

void endpoint_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		      struct endpoint to)
{
	const struct endpoint from = endpoint_of(mbuf, packet, end);
	const uint32_t changes = address_change(from.address, to.address);
	rte_be16_t *checksum = l4_checksum(mbuf, packet);

	put_address(packet_ipv4(mbuf, packet), end, to.address, changes);
	*port_field(mbuf, packet, end) = to.port;
	if (!checksum || (packet->protocol == IPPROTO_UDP && *checksum == 0))
		return;
	/* ICMP's checksum covers no pseudo header */
	*checksum =
		checksum_after(*checksum, (uint16_t)~from.port + (uint32_t)to.port +
						  (packet->protocol == IPPROTO_ICMP ? 0 : changes));
	if (packet->protocol == IPPROTO_UDP && *checksum == 0)
		*checksum = 0xffff; /* 0 would mean no checksum (RFC 768) */
}

static rte_be16_t icmp_sum(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const uint32_t length = packet->payload - packet->l4 + (uint32_t)packet->payload_length;
	uint16_t sum = 0;

	if (rte_raw_cksum_mbuf(mbuf, packet->l4, length, &sum) != 0)
		return 0;
	return sum;
}

bool quoted_packet(struct rte_mbuf *mbuf, const struct packet *error, struct packet *quoted)
{
	uint8_t *payload = NULL;
	const uint16_t here = packet_payload(mbuf, error, &payload);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)payload;
	uint16_t header;

	if (here < sizeof(*ip) || (ip->version_ihl >> 4) != 4)
		return false;
	header = rte_ipv4_hdr_len(ip);
	if (header < sizeof(*ip) || here < header + QUOTED_LEAST ||
	    (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)))
		return false;
	*quoted = (struct packet){
		.type = PACKET_IPV4,
		.l3 = error->payload,
		.l4 = error->payload + header,
		.payload = error->payload + here,
		.protocol = ip->next_proto_id,
	};
	return ipv4_checksum_is_right(ip) && icmp_sum(mbuf, error) == 0xffff;
}

void icmp_checksum_set(struct rte_mbuf *mbuf, const struct packet *packet)
{
	struct rte_icmp_hdr *icmp =
		rte_pktmbuf_mtod_offset(mbuf, struct rte_icmp_hdr *, packet->l4);

	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~icmp_sum(mbuf, packet);
}
