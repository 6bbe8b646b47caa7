/* A running load: its instance, its traffic, and the work it has done. */
#pragma once

#include "testbed/chain_workload.h"
#include "testbed/load.h"

struct workload {
	struct nf *nf;
	struct traffic *traffic;
	struct rte_mempool *spare;
	struct bench *bench;
	struct chain_workload *chain;
	uint64_t done __rte_cache_aligned; /* packets, or units of the bench's work */
	struct nf_out out __rte_cache_aligned;
};

/* NULL after printing why. */
struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed);
void workload_destroy(struct workload *workload);

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

static inline uint64_t workload_done(const struct workload *workload)
{
	return __atomic_load_n(&workload->done, __ATOMIC_RELAXED);
}
