/* Counters of a NAT; nat.c has their names. */
#ifndef NFS_FUNCTIONS_NAT_COUNTERS_H
#define NFS_FUNCTIONS_NAT_COUNTERS_H

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

#endif
