#include "core/flow_burst.h"

bool flow_burst_read_any(struct flow_burst *burst, struct rte_mbuf *packet, struct nf_out *out)
{
	struct packet parsed = packet_parse_any(packet);

	if (!burst->nf->leaves_ipv6_unread)
		parsed = packet_behind_extensions(packet, parsed);
	switch (parsed.type) {
	case PACKET_IPV4:
		burst->l3[burst->n] = parsed.l3;
		flow_burst_add(burst, packet, packet_flow(packet, &parsed));
		return true;
	case PACKET_IPV6:
		burst->ipv6_headers[burst->n_ipv6] = parsed;
		burst->ipv6[burst->n_ipv6++] = packet;
		return false;
	default:
		nf_other(burst->nf, packet, parsed.type, burst->other, out);
		return false;
	}
}
