#include "functions/dedup/payload.h"

static struct rte_udp_hdr *udp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_udp_hdr *, packet->l4);
}

static struct rte_tcp_hdr *tcp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_tcp_hdr *, packet->l4);
}

bool payload_is_restorable(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet_ipv4(mbuf, packet)->hdr_checksum == UINT16_MAX)
		return false;
	if (packet->protocol == IPPROTO_UDP)
		return rte_be_to_cpu_16(udp_of(mbuf, packet)->dgram_len) ==
		       sizeof(struct rte_udp_hdr) + packet->payload_length;
	return tcp_of(mbuf, packet)->cksum != UINT16_MAX;
}

struct rte_mbuf *payload_room(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			      const struct packet *packet, uint16_t length)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;
	char *to;

	if (!made)
		return NULL;
	to = rte_pktmbuf_append(made, packet->payload + length);
	if (!to) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	memcpy(to, rte_pktmbuf_mtod(mbuf, char *), packet->payload);
	metadata_inherit(made, mbuf);
	return made;
}

/* A ones' complement sum without some words and with others (RFC 1624, equation 3). */
static uint16_t changed(uint16_t checksum, uint32_t without, uint32_t with)
{
	uint32_t sum = (uint16_t)~checksum + (UINT16_MAX - without) + with;

	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

static void set_udp(struct rte_udp_hdr *udp, uint32_t without, uint32_t with, rte_be16_t length)
{
	uint16_t checksum = changed(udp->dgram_cksum, without, with);

	/* of the header, and of the pseudo header */
	checksum = checksum_changed(checksum, udp->dgram_len, length);
	checksum = checksum_changed(checksum, udp->dgram_len, length);
	udp->dgram_len = length;
	if (udp->dgram_cksum != 0) /* there is one */
		udp->dgram_cksum = checksum == 0 ? UINT16_MAX : checksum;
}

void payload_replaced(struct rte_mbuf *made, const struct packet *packet, const uint8_t *was,
		      uint16_t was_length)
{
	const uint16_t headers = packet->payload - packet->l4;
	const uint16_t length = rte_pktmbuf_data_len(made) - packet->payload;
	const uint32_t without = rte_raw_cksum(was, was_length);
	const uint32_t with = rte_raw_cksum(payload_of(made, packet), length);
	struct rte_ipv4_hdr *ip = packet_ipv4(made, packet);
	const rte_be16_t total = rte_cpu_to_be_16(rte_pktmbuf_data_len(made) - packet->l3);

	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, ip->total_length, total);
	ip->total_length = total;
	if (packet->protocol == IPPROTO_UDP) {
		set_udp(udp_of(made, packet), without, with, rte_cpu_to_be_16(headers + length));
	} else {
		struct rte_tcp_hdr *tcp = tcp_of(made, packet);

		tcp->cksum = checksum_changed(changed(tcp->cksum, without, with),
					      rte_cpu_to_be_16(headers + was_length),
					      rte_cpu_to_be_16(headers + length));
	}
}
