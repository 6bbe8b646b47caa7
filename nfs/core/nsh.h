/*
 * Network service headers (RFC 8300): an outer Ethernet header, a base header and a service path
 * header without metadata (MD type 2), then the packet with its own Ethernet header.
 */
#pragma once

#include <rte_mbuf.h>

#include "core/chain.h"

#define NSH_ETHER_TYPE 0x894f
#define NSH_BYTES 8          /* without metadata */
#define NSH_MOST_TTL 63

enum nsh_result {
	NSH_NONE,    /* the packet has no such header, and is unchanged */
	NSH_POPPED,
	NSH_INVALID, /* a header that is truncated, of another version, or expired */
};

/* Put a header in front of a packet. False, with the packet unchanged, if it has no room. */
bool nsh_push(struct rte_mbuf *mbuf, struct service service);

/* Remove the header, whatever metadata it has, if the packet has one. */
enum nsh_result nsh_pop(struct rte_mbuf *mbuf, struct service *service);
