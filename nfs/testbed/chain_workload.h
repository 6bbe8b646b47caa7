/* A chain that runs under load: its traffic, the work it has done, and its latency. */
#pragma once

#include "core/chain.h"
#include "testbed/chain_load.h"
#include "testbed/source.h"

struct chain_workload;

/* NULL after printing why. Traffic, spare packets and accelerators stay the caller's. */
struct chain_workload *chain_workload_create(const struct chain_load *load,
					     const struct source *source, struct rte_mempool *spare,
					     struct accelerator *const *accelerators);
/* No core may be in it any more, and it must be flushed. */
void chain_workload_destroy(struct chain_workload *workload);

/* One step of one of its cores; returns how many packets entered. */
uint16_t chain_workload_step(struct chain_workload *workload, unsigned int core, uint64_t now_us);
/* No core waits for another one any more. */
void chain_workload_interrupt(struct chain_workload *workload);
/* Let all packets leave, once no core is in it any more. */
void chain_workload_flush(struct chain_workload *workload, uint64_t now_us);

const struct chain *chain_workload_chain(const struct chain_workload *workload);
/* Times from when a packet should have entered to when it left, TSC / 256; only with a rate. */
struct latencies chain_workload_latencies(const struct chain_workload *workload);
/* Each core forgets its latencies before its next step. Any thread may call it. */
void chain_workload_reset(struct chain_workload *workload);
