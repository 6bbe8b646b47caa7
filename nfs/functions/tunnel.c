/*
 * Tunnel: puts a VLAN tag (IEEE 802.1Q) on every packet, from either side; Detunnel takes it off.
 *
 * The tag becomes the outer one of a packet that has a tag already. A packet that has two is freed:
 * 802.1Q knows no third, and other functions would not find its headers. So is one without room for
 * the tag, or shorter than an Ethernet header; what follows that header is not looked at. The frame
 * may become longer than 1518 bytes, as IEEE 802.3ac allows.
 */
#include "core/nf.h"
#include "core/packet.h"

enum { VLAN, PRIORITY };
static const struct nf_parameter parameters[] = {
	[VLAN] = {"vlan", "VLAN of the tag; 0: none, a tag with a priority only", 0, 4094, 100},
	[PRIORITY] = {"priority", "priority code point of the tag", 0, 7, 0},
};

enum { TAGGED, FULL, NO_ROOM, MALFORMED };
static const struct nf_counter counters[] = {
	[TAGGED] = {"tagged", "packets sent on with the tag"},
	[FULL] = {"full", "packets that have two tags, freed"},
	[NO_ROOM] = {"no_room", "packets without room for a tag, freed"},
	[MALFORMED] = {"malformed", "packets freed"},
};

/* The bytes of a tag, which stands before the type of what follows. */
#define ADDRESSES (2 * RTE_ETHER_ADDR_LEN)

static inline bool is_tag(rte_be16_t type)
{
	return type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ);
}

/* Whether a packet has as many tags as it may have. */
static inline bool is_full(const struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(ethernet + 1);

	return unlikely(is_tag(ethernet->ether_type)) &&
	       rte_pktmbuf_data_len(mbuf) >= sizeof(*ethernet) + sizeof(*tag) &&
	       is_tag(tag->eth_proto);
}

/* Tag a packet. Returns the counter of what became of it. */
static inline int put_tag(struct rte_mbuf *mbuf, uint32_t tag)
{
	char *begin;

	if (unlikely(rte_pktmbuf_data_len(mbuf) < sizeof(struct rte_ether_hdr)))
		return MALFORMED;
	if (unlikely(is_full(mbuf)))
		return FULL;
	begin = rte_pktmbuf_prepend(mbuf, sizeof(tag));
	if (unlikely(!begin))
		return NO_ROOM;
	memmove(begin, begin + sizeof(tag), ADDRESSES);
	memcpy(begin + ADDRESSES, &tag, sizeof(tag));
	packet_changed(mbuf);
	return TAGGED;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const uint16_t control = (uint16_t)((unsigned int)nf->settings[PRIORITY] << 13 |
					    (unsigned int)nf->settings[VLAN]);
	const uint32_t tag = rte_cpu_to_be_32((uint32_t)RTE_ETHER_TYPE_VLAN << 16 | control);

	for (uint16_t i = 0; i < n; i++) {
		const int result = put_tag(packets[i], tag);

		nf->counters[result]++;
		if (likely(result == TAGGED))
			nf_send(out, packets[i]);
		else
			rte_pktmbuf_free(packets[i]);
	}
}

NF_KIND("Tunnel", "puts a VLAN tag on packets", .process = process)
