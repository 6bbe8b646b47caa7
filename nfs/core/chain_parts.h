/* The parts of a chain, which core/chain_build.c makes and core/chain.c runs. */
#ifndef NFS_CORE_CHAIN_PARTS_H
#define NFS_CORE_CHAIN_PARTS_H

#include <rte_ring.h>

#include "core/chain.h"

#define NO_STOP UINT16_MAX
#define RING_PACKETS 4096 /* above what one burst can become, NF_MOST_OUT */
#define BACKLOG_PACKETS 1024

/* Where an edge leads: a stop, or an end of the chain. */
struct target {
	uint16_t stop; /* NO_STOP: out of the chain */
	bool nsh;      /* with `service` in a network service header */
	struct service service;
};

/* The edges of one gate: by the hash of a packet's flow, the first with a larger limit. */
struct gate {
	unsigned int n;
	struct {
		uint32_t limit;
		uint8_t edge; /* counted from the function's first one */
	} ways[CHAIN_MOST_WAYS];
};

struct place {
	struct nf *nf;
	char name[CHAIN_MOST_NAME];
	unsigned int core;
	unsigned int n_edges, n_gates;
	struct gate *gates; /* indexed by enum nf_gate */
	bool idle;          /* no burst since the last step */
	struct chain_counts counts __rte_cache_aligned;
	struct nf_out out;
};

struct stop {
	uint16_t place;
	uint16_t parent;  /* NO_STOP: packets enter here */
	uint32_t targets; /* the first in chain->targets, one for each edge of its function */
};

struct chain_core {
	struct rte_ring *ring; /* packets from other cores */
	uint64_t lost;
	unsigned int n_backlog;
	struct rte_mbuf *backlog[BACKLOG_PACKETS]; /* sent back; processed after the burst */
} __rte_cache_aligned;

struct entry {
	struct service service;
	uint16_t stop;
};

struct chain {
	struct chain_config config;
	bool one_way; /* edges lead only to the same core, or to one with a higher number */
	unsigned int n_places, n_cores, n_stops, n_targets, n_entries;
	uint16_t inside, outside; /* the stops where packets enter */
	struct place *places[CHAIN_MOST_FUNCTIONS];
	struct chain_core *cores[CHAIN_MOST_CORES];
	struct entry entries[CHAIN_MOST_EDGES]; /* by service path */
	struct stop stops[CHAIN_MOST_STOPS];
	struct target *targets;
};

#endif
