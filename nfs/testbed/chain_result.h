/* What the functions of a chain did in a run: packets that enter and leave each, and latency. */
#pragma once

#include "testbed/chain_workload.h"

struct chain_result {
	struct chain_counts stages[CHAIN_MOST_FUNCTIONS];
	uint64_t lost; /* on full rings */
	struct latencies latencies;
};

/* Add what a chain did in a round. No core may be in it any more. */
void chain_result_add(struct chain_result *result, const struct chain_workload *workload);

/*
 * Packets that leave a stage for each that enters the chain; above 1 if it makes several of one.
 */
double chain_result_leaving(const struct chain_result *result, unsigned int stage);
/* Packets that the stage neither sends on nor sends back, in percent of those that enter it. */
double chain_result_dropped_pct(const struct chain_result *result, unsigned int stage);
