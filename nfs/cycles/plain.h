/*
 * A plain loop over the DPDK structure that a network function uses: the least code for the one
 * kind of packet in the traffic. Functions are measured beside it.
 */
#ifndef NFS_CYCLES_PLAIN_H
#define NFS_CYCLES_PLAIN_H

#include "core/nf.h"

struct plain {
	const char *function; /* name of the network function */
	const char *does;
	/* State for a number of flows; NULL after printing why. */
	void *(*create)(uint32_t flows);
	/* Process a burst of untagged UDP in IPv4 without options; all packets are sent. */
	void (*process)(void *state, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
	void (*destroy)(void *state);

	struct plain *next;
};

void plain_register(struct plain *plain);

#define PLAIN_REGISTER(plain)                                                                      \
	__attribute__((constructor)) static void plain_register_##plain(void)                      \
	{                                                                                          \
		plain_register(&(plain));                                                          \
	}

#endif
