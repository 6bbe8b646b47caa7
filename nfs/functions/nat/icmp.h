/* ICMP through a NAT (RFC 5508): queries, and errors about translated packets. */
#pragma once

#include "functions/nat/sessions.h"

/* Whether a query of this type may pass in this direction: requests out, replies in (REQ-1). */
bool icmp_query_may_pass(uint8_t type, bool outward);

/*
 * Undo the translation in the packet that an error quotes, translate the error itself, and set its
 * port: outside if it came from inside, but inside if the quoted packet was hairpinned (REQ-7).
 * False, with the packet unchanged, if there is no mapping or the error is invalid.
 */
bool icmp_error_translate(struct sessions *sessions, struct rte_mbuf *mbuf,
			  const struct packet *packet);
