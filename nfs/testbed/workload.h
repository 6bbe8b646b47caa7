/* A running load: its instance, its traffic, and the work it has done. */
#ifndef NFS_TESTBED_WORKLOAD_H
#define NFS_TESTBED_WORKLOAD_H

#include "testbed/load.h"

struct workload {
	struct nf *nf;
	struct traffic *traffic;
	struct rte_mempool *spare;
	struct bench *bench;
	uint64_t done __rte_cache_aligned; /* packets, or units of the bench's work */
	struct nf_out out __rte_cache_aligned;
};

/* NULL after printing why. */
struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed);
void workload_destroy(struct workload *workload);

/* Process one burst, or one step of a bench; `now_us` is the clock of a network function. */
void workload_step(struct workload *workload, uint64_t now_us);
/* Wait for requests that accelerators still process. */
void workload_flush(struct workload *workload);

static inline uint64_t workload_done(const struct workload *workload)
{
	return __atomic_load_n(&workload->done, __ATOMIC_RELAXED);
}

#endif
