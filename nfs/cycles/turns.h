/* Runners that take turns on the same traffic. */
#pragma once

#include "cycles/runner.h"

#define TURNS_MOST 64

struct turns {
	struct rte_mempool *spare;
	struct traffic *traffic;
	uint32_t flows;
	uint64_t random; /* of the order */
	unsigned int n;
	struct runner runners[TURNS_MOST];
};

/* The runner of these functions and packets, made unless there is one; NULL after printing why. */
const struct runner *turns_obtain(struct turns *turns, const struct runner *wanted);

/* Measure all batches, with new instances after some of them. False after printing why. */
bool turns_run(struct turns *turns);

/* Destroy the instances; what was measured stays. */
void turns_end(struct turns *turns);
