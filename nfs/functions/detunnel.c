/*
 * Detunnel: takes the outer VLAN tag (IEEE 802.1Q or 802.1ad) off every packet, from either side;
 * Tunnel puts it on.
 *
 * Any tag is taken off, or that of one VLAN only: then packets with the tag of another are freed. A
 * packet without a tag passes as it is, or is freed if `untagged` is 0. One too short for its tag,
 * or for an Ethernet header, is freed; what follows is not looked at. A frame of 64 bytes or a
 * little more becomes shorter than Ethernet allows; a NIC pads it when it sends it.
 */
#include "core/nf.h"
#include "core/packet.h"

/* Reserved by IEEE 802.1Q, table 9-2, which suggests it as a wildcard. */
#define ANY_VLAN 4095

enum { VLAN, UNTAGGED_PASS };
static const struct nf_parameter parameters[] = {
	[VLAN] = {"vlan", "VLAN of the tags that are taken off; 4095: any", 0, ANY_VLAN, ANY_VLAN},
	[UNTAGGED_PASS] = {"untagged", "1: packets without a tag pass; 0: they are freed", 0, 1, 1},
};

enum { DETAGGED, UNTAGGED, FOREIGN, MALFORMED };
static const struct nf_counter counters[] = {
	[DETAGGED] = {"detagged", "packets sent on without their tag"},
	[UNTAGGED] = {"untagged", "packets without a tag, sent on or freed"},
	[FOREIGN] = {"foreign", "packets with a tag of another VLAN, freed"},
	[MALFORMED] = {"malformed", "packets freed"},
};

#define ADDRESSES (2 * RTE_ETHER_ADDR_LEN)
#define VLAN_MASK 0xfff

/* Take off the outer tag, if it is that of `vlan`. Returns the counter of what became of it. */
static inline int take_tag(struct rte_mbuf *mbuf, uint16_t vlan)
{
	struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(ethernet + 1);

	if (unlikely(rte_pktmbuf_data_len(mbuf) < sizeof(*ethernet)))
		return MALFORMED;
	if (ethernet->ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN) &&
	    ethernet->ether_type != RTE_BE16(RTE_ETHER_TYPE_QINQ))
		return UNTAGGED;
	if (unlikely(rte_pktmbuf_data_len(mbuf) < sizeof(*ethernet) + sizeof(*tag)))
		return MALFORMED;
	if (vlan != ANY_VLAN && (rte_be_to_cpu_16(tag->vlan_tci) & VLAN_MASK) != vlan)
		return FOREIGN;
	memmove((char *)ethernet + sizeof(*tag), ethernet, ADDRESSES);
	rte_pktmbuf_adj(mbuf, sizeof(*tag));
	packet_changed(mbuf);
	return DETAGGED;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const uint16_t vlan = (uint16_t)nf->settings[VLAN];
	const bool untagged_pass = nf->settings[UNTAGGED_PASS] == 1;

	for (uint16_t i = 0; i < n; i++) {
		const int result = take_tag(packets[i], vlan);

		nf->counters[result]++;
		if (result == DETAGGED || (result == UNTAGGED && untagged_pass))
			nf_send(out, packets[i]);
		else
			rte_pktmbuf_free(packets[i]);
	}
}

NF_KIND("Detunnel", "takes the VLAN tag off packets", .process = process)
