/* ICMP through a NAT (RFC 5508): which queries cross, and errors about translated packets. */
#ifndef NFS_FUNCTIONS_NAT_ICMP_H
#define NFS_FUNCTIONS_NAT_ICMP_H

#include "functions/nat/sessions.h"

/* Whether a query goes that way: out it asks, in it is answered (REQ-1). */
bool icmp_query_crosses(uint8_t type, bool outward);

/*
 * Undo the translation in what an error quotes, translate the error itself, and set the port that
 * it goes to: outside for one from inside, but inside again when the packet was hairpinned (REQ-7).
 * False, with the packet as it was, when it is about nothing that is mapped, or wrong.
 */
bool icmp_error_translate(const struct sessions *sessions, struct rte_mbuf *mbuf,
			  const struct packet *packet);

#endif
