#include <rte_hash_crc.h>

#include "core/memory.h"
#include "core/packet.h"
#include "cycles/peer.h"
#include "functions/lb/maglev.h"

#define SIZE 65537
#define BACKENDS 8

static void *create(void)
{
	uint16_t *table = nf_zalloc(SIZE * sizeof(*table));
	bool up[BACKENDS];

	memset(up, true, sizeof(up));
	return table && maglev_fill(table, SIZE, up, BACKENDS, 1) == 0 ? table : NULL;
}

static void process(void *table, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packets[i], struct rte_ipv4_hdr *,
								  sizeof(struct rte_ether_hdr));
		struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
		const struct flow_key flow = packet_plain_flow(packets[i]);
		const uint32_t hash = rte_hash_crc(&flow, sizeof(flow), 1);
		const rte_be32_t address = rte_cpu_to_be_32(RTE_IPV4(198, 18, 0, 1) +
							    maglev_backend(table, SIZE, hash));

		ip->hdr_checksum = checksum_changed32(ip->hdr_checksum, ip->dst_addr, address);
		if (udp->dgram_cksum != 0)
			udp->dgram_cksum =
				checksum_changed32(udp->dgram_cksum, ip->dst_addr, address);
		ip->dst_addr = address;
		nf_send(out, packets[i]);
	}
}

PLAIN_PEER_FREED("LB", "the table's entry for the CRC of the flow, address and checksums rewritten",
		 nf_free)
