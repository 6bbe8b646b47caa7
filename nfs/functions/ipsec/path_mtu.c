#include "functions/ipsec/path_mtu.h"

#include <rte_esp.h>

#include "core/rewrite.h"

#define RECENT (1u << 16) /* packets, if those of the last seconds are not more */

enum { UNREACHABLE = 3, FRAGMENTATION_NEEDED = 4 };

bool path_mtu_learn(struct path_mtu *path, struct rte_mbuf *mbuf, const struct packet *packet,
		    const struct ipsec_settings *settings, uint64_t arrived, uint64_t now_us)
{
	const enum nf_side side = settings->encrypted;
	const rte_be32_t local = rte_cpu_to_be_32(settings->ends[side]);
	const uint64_t oldest = path->begun[(path->second + 1) % PATH_MTU_SECONDS];
	const struct rte_ipv4_hdr *ip;
	struct rte_esp_hdr esp;
	struct packet quoted;
	const uint8_t *icmp;
	uint16_t mtu;

	if (packet->protocol != IPPROTO_ICMP || packet->l4 == 0 || packet->fragment ||
	    packet_ipv4(mbuf, packet)->dst_addr != local)
		return false;
	icmp = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, packet->l4);
	if (icmp[0] != UNREACHABLE || icmp[1] != FRAGMENTATION_NEEDED ||
	    !quoted_packet(mbuf, packet, &quoted))
		return false;
	ip = packet_ipv4(mbuf, &quoted);
	packet_copy(mbuf, quoted.l4, sizeof(esp), &esp);
	if (ip->next_proto_id != IPPROTO_ESP || ip->src_addr != local ||
	    ip->dst_addr != rte_cpu_to_be_32(settings->ends[!side]) ||
	    esp.spi != rte_cpu_to_be_32(settings->spi + side) ||
	    (uint32_t)arrived - rte_be_to_cpu_32(esp.seq) >= RTE_MAX(arrived - oldest, RECENT))
		return false;
	mtu = (uint16_t)(icmp[6] << 8 | icmp[7]);
	if (now_us >= path->until_us)
		path->mtu = path->below = 0;
	path->below |= mtu != 0 && mtu < PATH_MTU_LEAST; /* 0: of a router before RFC 1191 */
	mtu = RTE_MAX(mtu, PATH_MTU_LEAST);
	if (path->mtu == 0 || mtu < path->mtu)
		path->mtu = mtu;
	path->until_us = now_us + PATH_MTU_HELD_US;
	return true;
}
