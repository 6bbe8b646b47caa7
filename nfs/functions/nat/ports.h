/*
 * Free ports of an external address. The port that was free for longest is taken first, so that a
 * late packet of an old connection does not reach a new one; even and odd ports are kept apart, for
 * RTP and RTCP (RFC 4787, REQ-4).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PORTS_FIRST 1024
#define PORTS_HALF ((65536 - PORTS_FIRST) / 2)

struct ports {
	struct {
		uint32_t next, n; /* of the free ones */
		uint16_t free[PORTS_HALF];
	} halves[2];
};

/*
 * Make all ports free, in an order from the seed: ports are unpredictable (RFC 6056) only while the
 * seed, whose default is public, is secret.
 */
void ports_fill(struct ports *ports, uint64_t *random);

/* A free port, with the parity of `like` if possible; 0 if none is free. */
uint16_t ports_take(struct ports *ports, uint16_t like);
void ports_give(struct ports *ports, uint16_t port);
