#include "core/nsh.h"

#include <rte_ether.h>

#include "core/metadata.h"

#define VERSION 0
#define MD_TYPE_VARIABLE 2
#define NEXT_ETHERNET 3
#define OAM_BIT 0x2000
#define WORD 4

struct nsh {
	rte_be16_t version_ttl_length; /* version 2, O 1, unassigned 1, TTL 6, length 6 bits */
	uint8_t md_type;               /* the lower 4 bits */
	uint8_t next;
	rte_be32_t path_index;
} __rte_packed;

static_assert(sizeof(struct nsh) == NSH_BYTES, "RFC 8300, sections 2.2 and 2.3");

bool nsh_push(struct rte_mbuf *mbuf, struct service service)
{
	struct rte_ether_hdr *outer;
	struct nsh *nsh;

	if (rte_pktmbuf_data_len(mbuf) < sizeof(*outer))
		return false;
	outer = (struct rte_ether_hdr *)rte_pktmbuf_prepend(mbuf, sizeof(*outer) + sizeof(*nsh));
	if (!outer)
		return false;
	nsh = (struct nsh *)(outer + 1);
	memcpy(outer, nsh + 1, sizeof(*outer));
	outer->ether_type = RTE_BE16(NSH_ETHER_TYPE);
	*nsh = (struct nsh){
		.version_ttl_length = RTE_BE16(NSH_MOST_TTL << 6 | NSH_BYTES / WORD),
		.md_type = MD_TYPE_VARIABLE,
		.next = NEXT_ETHERNET,
		.path_index = rte_cpu_to_be_32(service.path << 8 | service.index),
	};
	packet_changed(mbuf);
	return true;
}

/* Bytes of the header; 0 if it is invalid. */
static uint16_t length_of(const struct nsh *nsh)
{
	const uint16_t first = rte_be_to_cpu_16(nsh->version_ttl_length);
	const uint16_t length = (first & 0x3f) * WORD, ttl = first >> 6 & 0x3f;

	if (first >> 14 != VERSION || (first & OAM_BIT) || ttl == 0 || nsh->next != NEXT_ETHERNET)
		return 0;
	return length >= NSH_BYTES ? length : 0;
}

enum nsh_result nsh_pop(struct rte_mbuf *mbuf, struct service *service)
{
	const struct rte_ether_hdr *outer = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct nsh *nsh = (const struct nsh *)(outer + 1);
	const uint16_t here = rte_pktmbuf_data_len(mbuf);
	uint16_t length;
	uint32_t path_index;

	if (here < sizeof(*outer) || outer->ether_type != RTE_BE16(NSH_ETHER_TYPE))
		return NSH_NONE;
	if (here < sizeof(*outer) + sizeof(*nsh))
		return NSH_INVALID;
	length = length_of(nsh);
	path_index = rte_be_to_cpu_32(nsh->path_index);
	if (length == 0 || here < 2 * sizeof(*outer) + length)
		return NSH_INVALID;
	*service = (struct service){path_index >> 8, (uint8_t)path_index};
	rte_pktmbuf_adj(mbuf, sizeof(*outer) + length);
	packet_changed(mbuf);
	return NSH_POPPED;
}
