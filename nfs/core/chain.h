/*
 * Runs a chain: a directed acyclic graph of network functions, on one core or several.
 *
 * Each core runs its functions to completion: a burst passes from one to the next without a queue.
 * Between cores are rings. A packet leaves a function by a gate (core/metadata.h): forward, by a
 * numbered gate, or back. What goes back passes the functions that it has come through in reverse
 * order, as a packet from outside does.
 *
 * Where functions merge, a packet must find its way back, so the graph is unfolded: a *stop* is a
 * function together with the way by which packets reach it. Packets from outside take the first
 * way. Packets with a network service header (RFC 8300) enter at the function of their service
 * path and index, or at one of several: its replicas share the flows. If a header is the only way
 * into a chain, packets without one are freed.
 *
 * Shares, behind a function as at an entry, split flows by the hash of core/split_hash.h.
 */
#pragma once

#include "core/nf.h"
#include "core/nsh.h"
#include "core/share.h"

#define CHAIN_MOST_FUNCTIONS 256
#define CHAIN_MOST_EDGES 1024
#define CHAIN_MOST_CORES 32
#define CHAIN_MOST_STOPS 4096
#define CHAIN_MOST_NAME 64
#define CHAIN_MOST_WAYS 32 /* edges of one gate or entry, each with a share of the flows */

/* Ends of the chain as values of an edge's `to`. */
enum { CHAIN_OUT = -1, CHAIN_OUT_NSH = -2 };

struct chain_function {
	char name[CHAIN_MOST_NAME]; /* unique in the chain */
	const struct nf_kind *kind;
	enum nf_execution execution; /* 0: the default */
	unsigned int n_settings;
	struct nf_setting settings[NF_MOST_PARAMETERS]; /* names and texts stay the caller's */
	unsigned int core; /* which of the chain's cores */
	uint32_t salt;     /* of the hash that splits flows behind it */
	unsigned int line; /* of a file, for messages; 0: none */
};

struct chain_edge {
	int from; /* a function; CHAIN_OUT_NSH: packets with `service` enter here */
	int to;   /* a function, or an end */
	uint8_t gate;
	struct share share; /* of the flows that leave by the gate, or enter with `service` */
	struct service service;
	uint32_t salt; /* of an entry's split; equal for all edges of a service */
	unsigned int line;
};

struct chain_spec {
	const char *source; /* a file's name, for messages; or NULL */
	unsigned int n_functions, n_edges, n_cores;
	struct chain_function functions[CHAIN_MOST_FUNCTIONS];
	struct chain_edge edges[CHAIN_MOST_EDGES];
};

/*
 * Check what can be checked without instances, and print every fault: a cycle, several entries or
 * none, functions out of reach, shares that do not add up. Returns the number of faults. Core 0 may
 * be without a function if packets enter by their service only: it sorts them.
 */
unsigned int chain_spec_check(const struct chain_spec *spec);

/* Where packets leave a chain. */
enum chain_end {
	CHAIN_FORWARD, /* at the outside */
	CHAIN_BACK,    /* at the inside */
};

/* Takes over packets that leave the chain on `core`, at most NF_BURST. */
typedef void (*chain_sink)(void *state, unsigned int core, enum chain_end end,
			   struct rte_mbuf **packets, uint16_t n);

struct chain_config {
	struct rte_mempool *spare;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	chain_sink sink;
	void *state;           /* of the sink */
	const bool *interrupt; /* ends waiting for a full ring; or NULL */
	/*
	 * `begun` of packets is the time at which they entered, the lower 32 bits of us: functions
	 * on other cores have that clock, too. Otherwise theirs is that of chain_step().
	 */
	bool timed;
	bool counts_rules; /* of functions that can: how often each of their rules decided */
	bool begins_at_random; /* see struct nf_config */
};

/* What a function did. Only its core writes it. */
struct chain_counts {
	uint64_t entered, sent, sent_back;
};

/* Why packets are freed outside functions. */
enum chain_loss {
	CHAIN_WITHOUT_NSH,  /* packets enter by a service header only */
	CHAIN_INVALID_NSH,  /* a header that is damaged, or expired */
	CHAIN_UNKNOWN_PATH, /* no function has this service path and index */
	CHAIN_NO_ROOM,      /* for a service header */
	CHAIN_RING_FULL,    /* another core is too slow, or was interrupted */
	CHAIN_TURNED,       /* sent back too often, or too many at once */
	CHAIN_LOSSES,
};

struct chain;

/* NULL after printing why. The spec must have no faults; it is copied. */
struct chain *chain_create(const struct chain_spec *spec, const struct chain_config *config);
/* No core may be in the chain any more, and all packets must have been flushed. */
void chain_destroy(struct chain *chain);

/*
 * An instance for a function of a chain, with the settings of a spec with the same functions; NULL
 * after printing why, also if it has other gates.
 */
struct nf *chain_make_instance(const struct chain *chain, const struct chain_spec *spec,
			       unsigned int at);
/*
 * Let a function go on with that instance, which takes over its counters and what it knows of
 * flows. No core may be in the chain, and all packets must have been flushed.
 */
void chain_exchange(struct chain *chain, unsigned int at, struct nf *nf);

/*
 * Let packets enter at the side that their metadata says, on the core that chain_entry_core()
 * names; at most NF_BURST, all from one side.
 */
void chain_enter(struct chain *chain, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);
unsigned int chain_entry_core(const struct chain *chain, enum nf_side from);

/*
 * Process what has come from other cores, and what functions of this core have finished since.
 * Returns how many packets came.
 */
unsigned int chain_step(struct chain *chain, unsigned int core, uint64_t now_us);

/* Whether nothing waits for a core: it may still be at work on a burst. */
bool chain_is_quiet(const struct chain *chain);

/* Let all packets leave, once no core is in the chain any more: one thread plays all cores. */
void chain_flush(struct chain *chain, uint64_t now_us);

unsigned int chain_functions(const struct chain *chain);
struct nf *chain_function(const struct chain *chain, unsigned int at);
const char *chain_function_name(const struct chain *chain, unsigned int at);
struct chain_counts chain_counts_of(const struct chain *chain, unsigned int at);
/* Packets freed outside functions; and those of one cause. */
uint64_t chain_lost(const struct chain *chain);
uint64_t chain_lost_by(const struct chain *chain, enum chain_loss loss);
/* "unknown_path" */
const char *chain_loss_name(enum chain_loss loss);
