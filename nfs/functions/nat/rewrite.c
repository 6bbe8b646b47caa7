#include "functions/nat/rewrite.h"

struct mapping *mapping_at(const struct sessions *sessions, struct rte_mbuf *mbuf,
			   const struct packet *packet)
{
	const struct endpoint to = endpoint_of(mbuf, packet, END_DESTINATION);

	if (!sessions_own(sessions, to.address))
		return NULL;
	return mapping_outside(sessions, nat_protocol(packet->protocol), to);
}

struct flow_key key_outward(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct endpoint source = endpoint_of(mbuf, packet, END_SOURCE);
	const struct endpoint to = endpoint_of(mbuf, packet, END_DESTINATION);

	return (struct flow_key){
		.source = source.address,
		.destination = to.address,
		.source_port = source.port,
		.destination_port = packet->protocol == IPPROTO_ICMP ? 0 : to.port,
		.protocol = packet->protocol,
	};
}

struct flow_key key_inward(struct rte_mbuf *mbuf, const struct packet *packet,
			   const struct mapping *mapping)
{
	const struct endpoint remote = endpoint_of(mbuf, packet, END_SOURCE);

	return (struct flow_key){
		.source = mapping->inside.address,
		.destination = remote.address,
		.source_port = mapping->inside.port,
		.destination_port = packet->protocol == IPPROTO_ICMP ? 0 : remote.port,
		.protocol = packet->protocol,
	};
}
