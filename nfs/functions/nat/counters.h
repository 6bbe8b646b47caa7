/* Counters of a NAT; nat.c has their names. */
#pragma once

#include "core/nf.h"

enum nat_counter {
	OUTWARD,
	INWARD,
	HAIRPINNED,
	ERRORS,
	STARTED,
	AGED,
	EXHAUSTED,
	FULL,
	UNMAPPED,
	FRAGMENTS,
	REASSEMBLED,
	FRAGMENTS_SENT,
	DUPLICATES, /* REASSEMBLY_COUNTERS from here */
	OVERLAPPING,
	EVICTED,
	UNASSEMBLED,
	CONGESTED,
	NO_ROOM,
	UNSUPPORTED,
	OTHER,
	MALFORMED,
};

static inline void drop(struct nf *nf, struct rte_mbuf *mbuf, enum nat_counter counter)
{
	nf->counters[counter]++;
	rte_pktmbuf_free(mbuf);
}
