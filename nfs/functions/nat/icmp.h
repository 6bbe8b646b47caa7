/* ICMP errors about packets that a NAT has translated (RFC 5508, section 4). */
#ifndef NFS_FUNCTIONS_NAT_ERRORS_H
#define NFS_FUNCTIONS_NAT_ERRORS_H

#include "functions/nat/sessions.h"

/*
 * Undo the translation in what the error quotes, and translate the error itself. False, with the
 * packet as it was, when it is about nothing that is mapped, or wrong.
 */
bool error_translate(const struct sessions *sessions, struct rte_mbuf *mbuf,
		     const struct packet *packet, bool outward);

#endif
