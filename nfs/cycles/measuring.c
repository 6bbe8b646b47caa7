#include "cycles/measuring.h"

#include <stdlib.h>

#include "accelerators/accelerator.h"

static int by_size(const void *a, const void *b)
{
	const double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

double quantile(double *values, unsigned int n, double share)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[(unsigned int)(share * (n - 1) + 0.5)];
}

struct nf_config config_of(const char *function, struct rte_mempool *spare)
{
	static const char *const engines[ACCELERATOR_KINDS] = {"hyperscan", "deflate"};
	static struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct nf_config config = {
		.name = function, .spare = spare, .execution = NF_RUN_TO_COMPLETION};

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!accelerators[kind])
			accelerators[kind] = engines[kind] ? accelerator_create_by(engines[kind])
							   : accelerator_create(kind);
		config.accelerators[kind] = accelerators[kind];
	}
	return config;
}
