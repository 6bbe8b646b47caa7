/*
 * Free ports of an external address. The one that has been free for longest is taken first, so
 * that a late packet of an old connection meets no new one; even and odd ones are kept apart, for
 * RTP and RTCP (RFC 4787, REQ-4).
 */
#ifndef NFS_FUNCTIONS_NAT_PORTS_H
#define NFS_FUNCTIONS_NAT_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#define PORTS_FIRST 1024
#define PORTS_HALF ((65536 - PORTS_FIRST) / 2)

struct ports {
	struct {
		uint32_t next, n; /* of those that are free */
		uint16_t free[PORTS_HALF];
	} halves[2];
};

/*
 * All are free, in an order that the seed gives: a stranger cannot guess the next one (RFC 6056)
 * only while the seed, whose default is public, is a secret.
 */
void ports_fill(struct ports *ports, uint64_t *random);

/* A free port, even or odd as `like` where there is one; 0 when there is none at all. */
uint16_t ports_take(struct ports *ports, uint16_t like);
void ports_give(struct ports *ports, uint16_t port);

#endif
