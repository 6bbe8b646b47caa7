#include "functions/nat/fragments.h"

#include <errno.h>

#include "core/fragment.h"
#include "core/ipv4.h"

#define LEAST_MTU 68 /* of every link (RFC 791, section 3.2) */

/* The counter of a fragment that cannot be translated; FRAGMENTS if it may be. */
static enum nat_counter fragment_counter(const struct sessions *sessions, struct rte_mbuf *fragment,
					 const struct packet *packet)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(fragment, packet);

	if (nat_protocol(packet->protocol) == NAT_PROTOCOLS)
		return UNSUPPORTED;
	if (!ipv4_checksum_is_right(ip)) /* the datagram gets a new one */
		return MALFORMED;
	if (packet_from(fragment) == NF_OUTSIDE && !sessions_own(sessions, ip->dst_addr))
		return UNMAPPED;
	return FRAGMENTS;
}

bool nat_reassemble(struct nf *nf, struct reassembly *reassembly, const struct sessions *sessions,
		    struct rte_mbuf *fragment, const struct packet *packet,
		    struct reassembled *whole)
{
	const enum nat_counter counter = fragment_counter(sessions, fragment, packet);

	if (counter != FRAGMENTS) {
		drop(nf, fragment, counter);
		return false;
	}
	nf->counters[FRAGMENTS]++;
	if (!reassembly_add(reassembly, fragment, packet, packet_from(fragment), nf->now_us, whole))
		return false;
	if (!reassembled_join_marks(whole)) {
		drop(nf, whole->mbuf, CONGESTED);
		return false;
	}
	nf->counters[REASSEMBLED]++;
	return true;
}

void nat_send_fragments(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			uint16_t largest, struct nf_out *out)
{
	const uint16_t mtu = RTE_MAX(largest, LEAST_MTU);
	struct rte_mbuf *fragments[FRAGMENTS_MOST];
	int n = -ENOMEM;

	if (nf->spare)
		n = ipv4_fragment(mbuf, packet, mtu, nf->spare, fragments);
	if (n < 0) {
		drop(nf, mbuf, n == -ENOMEM ? NO_ROOM : MALFORMED);
		return;
	}
	nf->counters[FRAGMENTS_SENT] += n;
	nf_send_bulk(out, fragments, (uint16_t)n);
}
