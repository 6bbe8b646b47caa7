/*
 * Threads that play the cores of a chain. The caller's thread plays core 0: it lets packets enter,
 * and takes over those that leave, from all cores, so that only one thread uses the link.
 */
#pragma once

#include "core/chain.h"

struct server_cores;

/* Takes over packets that left the chain, at most NF_BURST; on the caller's thread. */
typedef void (*server_sink)(void *state, enum chain_end end, struct rte_mbuf **packets, uint16_t n);

struct server_cores_config {
	unsigned int n;      /* cores of the chain */
	unsigned int packets; /* at most in use: a queue for so many never fills */
	const int *pins;     /* processors, one for each; NULL: not pinned */
	const uint64_t *now_us;
	server_sink sink;
	void *state; /* of the sink */
};

/* Before the chain, whose sink is server_cores_take. NULL after printing why. */
struct server_cores *server_cores_create(const struct server_cores_config *config);
void server_cores_take(void *cores, unsigned int core, enum chain_end end,
		       struct rte_mbuf **packets, uint16_t n);

/* Begin to play all cores. False after printing why. */
bool server_cores_start(struct server_cores *cores, struct chain *chain);
/* Give the sink what left on other cores. Returns how many. */
unsigned int server_cores_collect(struct server_cores *cores);
/* Process what has entered, and let all packets leave. */
void server_cores_flush(struct server_cores *cores);
/* Let the threads of other cores pause, or go on; packets must have been flushed. */
void server_cores_pause(struct server_cores *cores, bool paused);
/* End the threads; the chain still exists. */
void server_cores_stop(struct server_cores *cores);
void server_cores_destroy(struct server_cores *cores);
