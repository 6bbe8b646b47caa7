/*
 * A plain loop over the DPDK structure that a network function stands on: the least that anybody
 * would write for the one kind of packet that comes. It is what the function is measured beside.
 */
#ifndef NFS_CYCLES_PLAIN_H
#define NFS_CYCLES_PLAIN_H

#include "core/nf.h"

struct plain {
	const char *function; /* that it is the plain loop of */
	const char *does;
	/* For a number of flows; NULL after printing why. */
	void *(*create)(uint32_t flows);
	/* One burst of UDP in IPv4 without options, untagged; all of it is sent. */
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
