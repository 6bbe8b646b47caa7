#include "functions/ip_tunnel/reassembly.h"

#include <stdio.h>

#include <rte_ip_frag.h>
#include <rte_log.h>

#include "core/fragment.h"
#include "core/memory.h"
#include "functions/ip_tunnel/congestion.h"

/* Slots in which a datagram may be stored. */
#define WAYS 8
#define PREFETCH 3 /* packets prefetched while one is freed */

struct reassembly {
	struct rte_ip_frag_tbl *table; /* time in microseconds */
	struct rte_ip_frag_death_row expired;
	uint64_t *unassembled;
};

/* Silence the library, which prints the size of every table. */
static struct rte_ip_frag_tbl *make_table(uint32_t buckets, uint64_t timeout_us, int socket)
{
	const int level = rte_log_get_level(RTE_LOGTYPE_USER1);
	struct rte_ip_frag_tbl *table;

	rte_log_set_level(RTE_LOGTYPE_USER1, RTE_LOG_WARNING);
	table = rte_ip_frag_table_create(buckets, WAYS, buckets * WAYS, timeout_us, socket);
	rte_log_set_level(RTE_LOGTYPE_USER1, (uint32_t)level);
	return table;
}

struct reassembly *reassembly_create(uint32_t datagrams, uint64_t timeout_us, int socket,
				     uint64_t *unassembled)
{
	struct reassembly *reassembly = nf_zalloc(sizeof(*reassembly));
	const uint32_t buckets = rte_align32pow2(RTE_MAX(datagrams / WAYS, 2u));

	if (reassembly)
		reassembly->table = make_table(buckets, timeout_us, socket);
	if (!reassembly || !reassembly->table) {
		fprintf(stderr, "IPTunnel: no memory to reassemble %u datagrams\n", datagrams);
		nf_free(reassembly);
		return NULL;
	}
	reassembly->unassembled = unassembled;
	return reassembly;
}

static void free_expired(struct reassembly *reassembly)
{
	*reassembly->unassembled += reassembly->expired.cnt;
	rte_ip_frag_free_death_row(&reassembly->expired, PREFETCH);
}

/* Whether a fragment is invalid: it ends beyond the largest IPv4 datagram. */
static struct rte_mbuf *discard(struct reassembly *reassembly, struct rte_mbuf *mbuf)
{
	reassembly->expired.row[reassembly->expired.cnt++] = mbuf;
	return NULL;
}

void reassembly_destroy(struct reassembly *reassembly)
{
	reassembly_free_all(reassembly);
	rte_ip_frag_table_destroy(reassembly->table);
	nf_free(reassembly);
}

struct rte_mbuf *reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
				const struct packet *packet, uint64_t now_us)
{
	struct rte_ipv4_hdr *ip = packet_ipv4(fragment, packet);
	const uint16_t offset = rte_be_to_cpu_16(ip->fragment_offset) & RTE_IPV4_HDR_OFFSET_MASK;
	struct rte_mbuf *datagram;

	if (reassembly->expired.cnt > RTE_IP_FRAG_DEATH_ROW_MBUF_LEN / 2)
		free_expired(reassembly);
	if (offset * 8 + rte_be_to_cpu_16(ip->total_length) > UINT16_MAX)
		return discard(reassembly, fragment);
	packet_unpad(fragment, packet->l3);
	store_congestion_mark(fragment, ip->type_of_service);
	fragment->l2_len = packet->l3;
	fragment->l3_len = rte_ipv4_hdr_len(ip);
	datagram = rte_ipv4_frag_reassemble_packet(reassembly->table, &reassembly->expired,
						   fragment, now_us, ip);
	/* the first fragment may have options that the others lack */
	if (datagram && rte_pktmbuf_pkt_len(datagram) - datagram->l2_len > UINT16_MAX)
		return discard(reassembly, datagram);
	return datagram;
}

bool reassembly_expire(struct reassembly *reassembly, uint64_t now_us)
{
	rte_ip_frag_table_del_expired_entries(reassembly->table, &reassembly->expired, now_us);
	if (likely(reassembly->expired.cnt == 0))
		return false;
	free_expired(reassembly);
	return true;
}

void reassembly_free_all(struct reassembly *reassembly)
{
	while (reassembly_expire(reassembly, UINT64_MAX))
		;
}
