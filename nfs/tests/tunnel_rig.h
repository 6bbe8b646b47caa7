/* What the tests of IPTunnel share: both ends of a tunnel, and what is on its way through it. */
#ifndef NFS_TESTS_TUNNEL_RIG_H
#define NFS_TESTS_TUNNEL_RIG_H

#include "tests/support.h"

#define TUNNEL_LOCAL UINT32_C(0xc0000201)  /* 192.0.2.1 */
#define TUNNEL_REMOTE UINT32_C(0xc0000202) /* 192.0.2.2 */

/* A packet that comes from inside. */
extern const struct made from_inside;

/* What was sent, in and out of the tunnel again by its other end. */
void take_out(struct rig *rig);

/*
 * A long packet that the other end put into the tunnel, which cut it into fragments of `size`
 * bytes behind their headers; how many. What it was before comes in `original`, unless that is
 * NULL.
 */
uint16_t tunnelled(struct rig *rig, uint16_t id, uint16_t size, struct rte_mbuf **fragments,
		   struct rte_mbuf **original);

#endif
