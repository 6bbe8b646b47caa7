/* A running load: its instance, its traffic, and the work it has done, on each core. */
#pragma once

#include "testbed/chain_workload.h"
#include "testbed/load.h"

struct workload {
	struct nf *nf;
	struct traffic *traffic;
	struct rte_mempool *spare;
	struct bench *bench;
	struct chain_workload *chain;
	struct workload *next; /* the function's copy on the next core */
	struct source source;  /* of a function */
	uint64_t fill;         /* packets after which its tables are filled */
	unsigned int epoch;    /* how often latencies were forgotten */
	struct core_latencies latencies;
	uint64_t done __rte_cache_aligned; /* packets, or units of the bench's work */
	struct nf_out out __rte_cache_aligned;
};

/* The first copy; NULL after printing why. A copy without flows is left out. */
struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed);
void workload_destroy(struct workload *workload);

/* What runs on one of its cores; NULL: nothing. */
struct workload *workload_on(struct workload *workload, unsigned int core);

/*
 * Process one burst, or one step of a bench, or of one core of a chain; `now_us` is the clock of
 * network functions.
 */
void workload_step(struct workload *workload, unsigned int core, uint64_t now_us);
/* Wait for requests that accelerators still process; a chain does it in workload_end(). */
void workload_flush(struct workload *workload);
/* Measuring begins: forget what warming up took. Any thread may call it. */
void workload_begin(struct workload *workload);
/* Cores that wait for others return from their step. */
void workload_interrupt(struct workload *workload);
/* Once no core is in it any more: let the packets in it leave. */
void workload_end(struct workload *workload, uint64_t now_us);

/* Of all copies. */
static inline uint64_t workload_done(const struct workload *workload)
{
	uint64_t done = 0;

	for (; workload; workload = workload->next)
		done += __atomic_load_n(&workload->done, __ATOMIC_RELAXED);
	return done;
}

/* Whether the tables of all copies are filled. */
static inline bool workload_filled(const struct workload *workload)
{
	while (workload && __atomic_load_n(&workload->done, __ATOMIC_RELAXED) >= workload->fill)
		workload = workload->next;
	return !workload;
}
