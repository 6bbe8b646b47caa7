/* Shared by the tests of benches that load an accelerator. */
#ifndef NFS_TESTS_REQUESTING_H
#define NFS_TESTS_REQUESTING_H

#include "accelerators/accelerator.h"
#include "core/bench.h"
#include "tests/rate.h"
#include "tests/support.h"

struct requesting {
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct bench *bench;
};

static inline struct requesting requesting(const char *name, enum accelerator_kind uses,
					   const struct nf_setting *settings, unsigned int n)
{
	struct requesting made = {.accelerators = {NULL}};

	made.accelerators[uses] = accelerator_create(uses);
	assert_non_null(made.accelerators[uses]);
	made.bench = bench_create(name, made.accelerators, settings, n);
	return made;
}

static inline void requesting_end(struct requesting *made, enum accelerator_kind uses)
{
	bench_destroy(made->bench);
	accelerator_destroy(made->accelerators[uses]);
}

static inline void check_requests(const char *name, enum accelerator_kind uses,
				  const struct nf_setting *settings, unsigned int n, double rate)
{
	struct requesting made = requesting(name, uses, settings, n);

	assert_non_null(made.bench);
	check_rate(made.bench, rate);
	requesting_end(&made, uses);
}

/* Each completion makes room for a request; with a card, not every step completes one. */
static inline void check_unlimited_rate(const char *name, enum accelerator_kind uses,
					const struct nf_setting *settings, unsigned int n)
{
	struct requesting made = requesting(name, uses, settings, n);
	uint64_t done = 0;

	assert_non_null(made.bench);
	for (int i = 0; i < 2000; i++)
		done += bench_step(made.bench);
	assert_true(done >= 1000);
	requesting_end(&made, uses);
}

static inline void check_rejected(const char *name, enum accelerator_kind uses,
				  const struct nf_setting *setting)
{
	struct requesting made = requesting(name, uses, setting, 1);

	assert_null(made.bench);
	requesting_end(&made, uses);
}

#endif
