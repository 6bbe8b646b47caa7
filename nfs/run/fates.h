/* What became of each received packet, found by passing them one by one. */
#pragma once

#include <stdio.h>

#include "core/chain.h"

enum fate {
	FATE_OUT,     /* left at the outside, perhaps in fragments */
	FATE_BACK,    /* left at the inside, itself or as an answer */
	FATE_DROPPED, /* a function freed it */
	FATE_HELD,    /* a function kept it, and it left within another packet or was freed later */
	FATES,
};

struct fates;

/* NULL after printing why. */
struct fates *fates_create(const struct chain *chain);
void fates_destroy(struct fates *fates);

/* Before a packet with this number enters; numbers count from 0. False without memory. */
bool fates_begin(struct fates *fates, uint32_t number);
/* A packet that leaves, whatever entered last. */
void fates_left(struct fates *fates, const struct rte_mbuf *packet, enum chain_end end);
/* After the packet has entered; `held` says whether its buffer is still in the chain. */
void fates_end(struct fates *fates, uint32_t number, bool held);

/* A line of JSON for each packet, in order; false if the stream fails. */
bool fates_print(const struct fates *fates, FILE *stream);
