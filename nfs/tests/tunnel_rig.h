/* Shared by the tests of IPTunnel: both ends of a tunnel, and packets in it. */
#pragma once

#include "tests/support.h"

#define TUNNEL_LOCAL UINT32_C(0xc0000201)  /* 192.0.2.1 */
#define TUNNEL_REMOTE UINT32_C(0xc0000202) /* 192.0.2.2 */

/* A packet from inside. */
extern const struct packet_spec from_inside;

/* Decapsulate the sent packets at the other end of the tunnel; `rig->out` then holds the result. */
void decapsulate_at_other_end(struct rig *rig);

#define TUNNELLED_MOST 128

/*
 * A long packet from the other end, fragmented in the tunnel into `size` bytes behind their
 * headers; returns their number, at most TUNNELLED_MOST. `original` receives the packet before
 * that, unless it is NULL.
 */
uint16_t tunnelled(struct rig *rig, uint16_t id, uint16_t size, struct rte_mbuf **fragments,
		   struct rte_mbuf **original);
