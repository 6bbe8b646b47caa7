/* Shared by the tests of benches that load an accelerator. */
#pragma once

#include "accelerators/accelerator.h"
#include "core/bench.h"
#include "tests/rate.h"
#include "tests/support.h"

struct bench_with_engine {
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct bench *bench;
};

static inline struct bench_with_engine bench_with_engine(const char *name,
							 enum accelerator_kind uses,
							 const struct nf_setting *settings,
							 unsigned int n)
{
	struct bench_with_engine loaded = {.accelerators = {NULL}};

	loaded.accelerators[uses] = accelerator_create(uses);
	assert_non_null(loaded.accelerators[uses]);
	loaded.bench = bench_create(name, loaded.accelerators, settings, n);
	return loaded;
}

static inline void bench_with_engine_destroy(struct bench_with_engine *loaded,
					     enum accelerator_kind uses)
{
	bench_destroy(loaded->bench);
	accelerator_destroy(loaded->accelerators[uses]);
}

static inline void check_requests(const char *name, enum accelerator_kind uses,
				  const struct nf_setting *settings, unsigned int n, double rate)
{
	struct bench_with_engine loaded = bench_with_engine(name, uses, settings, n);

	assert_non_null(loaded.bench);
	check_rate(loaded.bench, rate);
	bench_with_engine_destroy(&loaded, uses);
}

/* Each completion makes room for a request; with a card, not every step completes one. */
static inline void check_unlimited_rate(const char *name, enum accelerator_kind uses,
					const struct nf_setting *settings, unsigned int n)
{
	struct bench_with_engine loaded = bench_with_engine(name, uses, settings, n);
	uint64_t done = 0;

	assert_non_null(loaded.bench);
	for (int i = 0; i < 2000; i++)
		done += bench_step(loaded.bench);
	assert_true(done >= 1000);
	bench_with_engine_destroy(&loaded, uses);
}

static inline void check_rejected(const char *name, enum accelerator_kind uses,
				  const struct nf_setting *setting)
{
	struct bench_with_engine loaded = bench_with_engine(name, uses, setting, 1);

	assert_null(loaded.bench);
	bench_with_engine_destroy(&loaded, uses);
}
