#include <rte_ether.h>

#include "cycles/peer.h"

static void put_tags(void *state, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	(void)state;
	for (uint16_t i = 0; i < n; i++) {
		packets[i]->vlan_tci = 100;
		if (rte_vlan_insert(&packets[i]) == 0)
			nf_send(out, packets[i]);
	}
}

static struct peer tunnel = {
	.function = "Tunnel",
	.name = "plain loop",
	.does = "rte_vlan_insert",
	.process = put_tags,
};

PEER_REGISTER(tunnel)

/* Tags for what is to be detagged. */
static uint16_t tag(void *state, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t tagged = 0;

	(void)state;
	for (uint16_t i = 0; i < n; i++) {
		packets[i]->vlan_tci = 100;
		if (rte_vlan_insert(&packets[i]) == 0)
			packets[tagged++] = packets[i];
	}
	return tagged;
}

static void take_tags(void *state, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	(void)state;
	for (uint16_t i = 0; i < n; i++) {
		(void)rte_vlan_strip(packets[i]);
		nf_send(out, packets[i]);
	}
}

static struct peer detunnel = {
	.function = "Detunnel",
	.name = "plain loop",
	.does = "rte_vlan_strip",
	.prepare = tag,
	.process = take_tags,
};

PEER_REGISTER(detunnel)
