#include "core/flow_burst.h"

bool flow_burst_read_any(struct flow_burst *burst, struct rte_mbuf *packet, struct nf_out *out)
{
	const struct packet parsed = packet_parse_any(packet);

	if (parsed.type == PACKET_MALFORMED) {
		burst->malformed++;
		rte_pktmbuf_free(packet);
	} else if (parsed.type == PACKET_IPV4) {
		burst->l3[burst->n] = parsed.l3;
		flow_burst_add(burst, packet, packet_flow(packet, &parsed));
		return true;
	} else {
		burst->other++;
		nf_send(out, packet);
	}
	return false;
}
