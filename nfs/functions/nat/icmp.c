#include "functions/nat/icmp.h"

#include "core/nf.h"
#include "functions/nat/rewrite.h"

/* Types of queries with an identifier, besides echo (RFC 792, RFC 950). */
enum {
	ICMP_TIMESTAMP = 13,
	ICMP_TIMESTAMP_REPLY = 14,
	ICMP_ADDRESS_MASK = 17,
	ICMP_ADDRESS_MASK_REPLY = 18,
};

bool icmp_query_may_pass(uint8_t type, bool outward)
{
	switch (type) {
	case RTE_IP_ICMP_ECHO_REQUEST:
	case ICMP_TIMESTAMP:
	case ICMP_ADDRESS_MASK:
		return outward;
	case RTE_IP_ICMP_ECHO_REPLY:
	case ICMP_TIMESTAMP_REPLY:
	case ICMP_ADDRESS_MASK_REPLY:
		return !outward;
	default:
		return false;
	}
}

/* The mapping of the quoted packet's sender, who receives the error; or NULL. */
static struct mapping *sender_of(struct sessions *sessions, struct rte_mbuf *mbuf,
				 const struct packet *packet, const struct packet *quoted)
{
	const struct endpoint sender = endpoint_of(mbuf, quoted, END_SOURCE);

	if (sender.address != packet_ipv4(mbuf, packet)->dst_addr ||
	    !sessions_own(sessions, sender.address))
		return NULL;
	return mapping_live(
		sessions, mapping_outside(sessions, nat_protocol(quoted->protocol), sender));
}

/* The mapping of the quoted packet's receiver; or NULL. */
static struct mapping *receiver_of(struct sessions *sessions, struct rte_mbuf *mbuf,
				   const struct packet *quoted)
{
	return mapping_live(sessions, mapping_inside(sessions, quoted->protocol,
						     endpoint_of(mbuf, quoted, END_DESTINATION)));
}

bool icmp_error_translate(struct sessions *sessions, struct rte_mbuf *mbuf,
			  const struct packet *packet)
{
	const bool outward = packet_from(mbuf) == NF_INSIDE;
	const bool inward = !outward || sessions_own(sessions, packet_ipv4(mbuf, packet)->dst_addr);
	const struct mapping *sender = NULL, *receiver = NULL;
	struct packet quoted;

	if (!quoted_packet(mbuf, packet, &quoted) || nat_protocol(quoted.protocol) == NAT_PROTOCOLS)
		return false;
	if (outward && !(receiver = receiver_of(sessions, mbuf, &quoted)))
		return false;
	if (inward && !(sender = sender_of(sessions, mbuf, packet, &quoted)))
		return false;
	if (receiver) {
		endpoint_rewrite(mbuf, &quoted, END_DESTINATION, receiver->outside);
		address_rewrite(mbuf, packet, END_SOURCE, receiver->outside.address);
	}
	if (sender) {
		endpoint_rewrite(mbuf, &quoted, END_SOURCE, sender->inside);
		address_rewrite(mbuf, packet, END_DESTINATION, sender->inside.address);
	}
	icmp_checksum_set(mbuf, packet);
	packet_send_to(mbuf, inward ? NF_INSIDE : NF_OUTSIDE);
	return true;
}
