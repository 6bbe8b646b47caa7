/* A chain of a run request: what runs, and on which cores. */
#pragma once

#include "core/chain.h"

struct chain_load {
	struct chain_spec spec;
	char name[128];                  /* "ACL -> NAT"; long ones are cut */
	double shares[CHAIN_MOST_CORES]; /* of each core's time, above 0, at most 1 */
};

/* Sum of NF_USES() of all its functions. */
static inline unsigned int chain_load_accelerators(const struct chain_load *load)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < load->spec.n_functions; i++)
		used |= load->spec.functions[i].kind->accelerators;
	return used;
}

/* Whether a function changes payloads, so that its traffic must renew them. */
static inline bool chain_load_alters(const struct chain_load *load)
{
	for (unsigned int i = 0; i < load->spec.n_functions; i++)
		if (load->spec.functions[i].kind->alters)
			return true;
	return false;
}
