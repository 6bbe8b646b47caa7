/*
 * Peers: other programs for the work of a network function, as fast as they can be for the one kind
 * of packet in the traffic. Functions are measured beside them.
 *
 * A plain loop is the least code over the DPDK structure that the function uses: it shows the
 * function's overhead. Another peer has another design: it shows what the structure costs.
 */
#pragma once

#include "core/nf.h"

struct peer {
	const char *function; /* name of the network function */
	const char *name;
	const char *does;
	/* State; NULL after printing why. Without state it is NULL itself, as is destroy(). */
	void *(*create)(void);
	/*
	 * Process a burst of untagged UDP in IPv4 without options, or of what prepare() made of it;
	 * all packets are sent.
	 */
	void (*process)(void *state, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
	void (*destroy)(void *state);
	/*
	 * Make packets that the function works on, of those of the traffic, before time is taken;
	 * for both. Returns how many. NULL: the traffic as it is.
	 */
	uint16_t (*prepare)(void *state, struct rte_mbuf **packets, uint16_t n);

	struct peer *next;
};

void peer_register(struct peer *peer);

#define PEER_REGISTER(peer)                                                                        \
	__attribute__((constructor)) static void peer_register_##peer(void)                        \
	{                                                                                          \
		peer_register(&(peer));                                                            \
	}

/* The plain loop for a function: create() and process() of its file, and what frees its state. */
#define PLAIN_PEER_FREED(of, text, free)                                                           \
	static struct peer plain = {                                                               \
		.function = of,                                                                    \
		.name = "plain loop",                                                              \
		.does = text,                                                                      \
		.create = create,                                                                  \
		.process = process,                                                                \
		.destroy = free,                                                                   \
	};                                                                                         \
	PEER_REGISTER(plain)

#define PLAIN_PEER(of, text) PLAIN_PEER_FREED(of, text, destroy)
