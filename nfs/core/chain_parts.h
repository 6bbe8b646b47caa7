/* The parts of a chain, which core/chain_build.c makes. */
#pragma once

#include <rte_ring.h>

#include "core/chain.h"
#include "core/split_hash.h"

#define NO_STOP UINT16_MAX
#define RING_PACKETS 4096 /* above what one burst can become, NF_MOST_OUT */
#define BACKLOG_PACKETS 1024

/* Where an edge leads: a stop, or an end of the chain. */
struct target {
	uint16_t stop; /* NO_STOP: out of the chain */
	bool nsh;      /* with `service` in a network service header */
	struct service service;
};

/* Edges that share flows: by the hash of a packet, the first with a larger limit. */
struct ways {
	unsigned int n;
	uint32_t salt;
	uint32_t limits[CHAIN_MOST_WAYS];
};

/* The edges of one gate. */
struct gate {
	struct ways ways;
	uint16_t edges[CHAIN_MOST_WAYS]; /* counted from the function's first one */
};

struct place {
	struct nf *nf;
	struct gate *gates; /* indexed by enum nf_gate */
	unsigned int core;
	unsigned int n_edges, n_gates;
	bool holds; /* packets may stay in the function */
	bool idle;  /* no burst since the last step */
	struct chain_counts counts __rte_cache_aligned;
	struct nf_out out;
	char name[CHAIN_MOST_NAME];
};

struct stop {
	uint16_t place;
	uint16_t parent;  /* NO_STOP: packets enter here */
	uint32_t targets; /* the first in chain->targets, one for each edge of its function */
};

struct chain_core {
	struct rte_ring *ring; /* packets from other cores */
	uint64_t lost[CHAIN_LOSSES];
	unsigned int n_backlog;
	struct rte_mbuf *backlog[BACKLOG_PACKETS]; /* sent back; processed after the burst */
} __rte_cache_aligned;

/* Where packets of a service enter: at several stops if functions share them. */
struct entry {
	uint32_t key; /* path and index, as in the header */
	struct ways ways;
	uint16_t stops[CHAIN_MOST_WAYS];
};

/* Entries by the hash of their keys; a slot has an entry's number + 1, or 0. */
#define ENTRY_SLOTS_SHIFT 11
#define ENTRY_SLOTS (1u << ENTRY_SLOTS_SHIFT)
static_assert(ENTRY_SLOTS >= 2 * CHAIN_MOST_EDGES, "so that a free slot ends every search");

static inline uint32_t service_key(struct service service)
{
	return service.path << 8 | service.index;
}

static inline uint32_t entry_slot(uint32_t key)
{
	return key * 0x9e3779b1u >> (32 - ENTRY_SLOTS_SHIFT);
}

struct chain {
	struct chain_config config;
	bool one_way; /* edges lead only to the same core, or to one with a higher number */
	unsigned int n_places, n_cores, n_stops, n_targets, n_entries;
	uint16_t inside;  /* the stop of packets without a service; NO_STOP: they may not enter */
	uint16_t outside; /* where those from outside enter */
	struct place *places[CHAIN_MOST_FUNCTIONS];
	struct chain_core *cores[CHAIN_MOST_CORES];
	struct entry *entries;
	uint16_t entry_slots[ENTRY_SLOTS];
	struct stop stops[CHAIN_MOST_STOPS];
	struct target *targets;
};

/* Free packets, for a cause that is counted. */
void chain_lose(struct chain_core *core, enum chain_loss loss, struct rte_mbuf **packets,
		uint16_t n);
/* Take packets to their stops, from `core`: those of one stop and side together, in order. */
void chain_run_mixed(struct chain *chain, unsigned int core, struct rte_mbuf **packets, uint16_t n,
		     uint64_t now_us);
/* The same for packets that all come from one side, all to one stop. */
void chain_deliver(struct chain *chain, unsigned int core, uint16_t stop, struct rte_mbuf **packets,
		   uint16_t n, uint64_t now_us);
/* Let packets that were turned go on. */
void chain_run_backlog(struct chain *chain, unsigned int core, uint64_t now_us);

/* The one of several ways that a packet takes. */
static inline unsigned int way_of(const struct ways *ways, struct rte_mbuf *mbuf)
{
	const struct packet headers = packet_headers(mbuf);
	const uint32_t value = split_hash(mbuf, &headers, ways->salt);
	unsigned int way = 0;

	while (value >= ways->limits[way]) /* the last limit is above all */
		way++;
	return way;
}
