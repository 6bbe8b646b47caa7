/*
 * Fragments through a NAT (RFC 4787, REQ-14): only the first one has ports, and it may come late.
 * Datagrams are reassembled before they are translated, and then fragmented again.
 */
#pragma once

#include "core/reassembly.h"
#include "functions/nat/counters.h"
#include "functions/nat/sessions.h"

/*
 * Take over a fragment, and count it. Returns whether it completes a datagram: `whole->mbuf`, to be
 * sent by `nat_send`. Fragments that cannot be translated are freed before they take any room.
 */
bool nat_reassemble(struct nf *nf, struct reassembly *reassembly, const struct sessions *sessions,
		    struct rte_mbuf *fragment, const struct packet *packet,
		    struct reassembled *whole);

/* Send a datagram in fragments, none longer than `largest`, but 68 bytes pass every link. */
void nat_send_fragments(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			uint16_t largest, struct nf_out *out);

/* Send a packet, which arrived in fragments if `largest` is not 0. */
static inline void nat_send(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			    uint16_t largest, struct nf_out *out)
{
	if (unlikely(largest != 0))
		nat_send_fragments(nf, mbuf, packet, largest, out);
	else
		nf_send(out, mbuf);
}
