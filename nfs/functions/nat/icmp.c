#include "functions/nat/errors.h"

#include "functions/nat/rewrite.h"

/* The mapping of what the error is about; or NULL. */
static struct mapping *mapping_of(const struct sessions *sessions, struct rte_mbuf *mbuf,
				  const struct packet *packet, const struct packet *quoted,
				  bool outward)
{
	const enum nat_protocol protocol = nat_protocol(quoted->protocol);
	struct endpoint about;

	if (protocol == NAT_PROTOCOLS)
		return NULL;
	if (outward) {
		if (sessions_own(sessions, packet_ipv4(mbuf, packet)->dst_addr))
			return NULL; /* turning errors back is not supported */
		about = endpoint_of(mbuf, quoted, END_DESTINATION);
		return mapping_inside(sessions, quoted->protocol, about);
	}
	about = endpoint_of(mbuf, quoted, END_SOURCE);
	if (about.address != packet_ipv4(mbuf, packet)->dst_addr ||
	    !sessions_own(sessions, about.address))
		return NULL;
	return mapping_outside(sessions, protocol, about);
}

bool error_translate(const struct sessions *sessions, struct rte_mbuf *mbuf,
		     const struct packet *packet, bool outward)
{
	const struct mapping *mapping;
	struct packet quoted;

	if (!quoted_packet(mbuf, packet, &quoted))
		return false;
	mapping = mapping_of(sessions, mbuf, packet, &quoted, outward);
	if (!mapping)
		return false;
	endpoint_rewrite(mbuf, &quoted, outward ? END_DESTINATION : END_SOURCE,
			 outward ? mapping->outside : mapping->inside);
	address_rewrite(mbuf, packet, outward ? END_SOURCE : END_DESTINATION,
			outward ? mapping->outside.address : mapping->inside.address);
	icmp_checksum_again(mbuf, packet);
	return true;
}
