/*
 * Network service headers (RFC 8300): an outer Ethernet header, a base header and a service path
 * header without metadata (MD type 2), then the packet with its own Ethernet header.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define NSH_ETHER_TYPE 0x894f
#define NSH_BYTES 8          /* without metadata */
#define NSH_MOST_TTL 63

/* A service path and the index of the next function in it (RFC 8300). */
struct service {
	uint32_t path; /* 24 bits */
	uint8_t index;
};

enum nsh_result {
	NSH_NONE,    /* the packet has no such header, and is unchanged */
	NSH_POPPED,
	NSH_INVALID, /* a header that is truncated, of another version, or expired */
};

/* Put a header in front of a packet. False, with the packet unchanged, if it has no room. */
bool nsh_push(struct rte_mbuf *mbuf, struct service service);

/* Remove the header, whatever metadata it has, if the packet has one. */
enum nsh_result nsh_pop(struct rte_mbuf *mbuf, struct service *service);
