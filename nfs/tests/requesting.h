/* What the tests of benches that load an accelerator share. */
#ifndef NFS_TESTS_REQUESTING_H
#define NFS_TESTS_REQUESTING_H

#include <rte_cycles.h>

#include "accelerators/accelerator.h"
#include "core/bench.h"
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

/* At most 2 % more requests than `rate` are done in a while, and some. */
static inline void check_rate(const char *name, enum accelerator_kind uses,
			      const struct nf_setting *settings, unsigned int n, double rate)
{
	struct requesting made = requesting(name, uses, settings, n);
	const uint64_t begin = rte_rdtsc(), hz = rte_get_tsc_hz();
	uint64_t done = 0, now = begin;

	assert_non_null(made.bench);
	while (now - begin < hz / 5) {
		done += bench_step(made.bench);
		now = rte_rdtsc();
	}
	print_message("%s: %.0f of %.0f requests/s\n", name, (double)done * hz / (now - begin),
		      rate);
	assert_true(done > 0);
	assert_true((double)done * hz / (now - begin) <= 1.02 * rate);
	requesting_end(&made, uses);
}

/* Each answer makes room for a request: steps go on to answer them, on a card not each of them. */
static inline void check_flat_out(const char *name, enum accelerator_kind uses,
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

static inline void check_refused(const char *name, enum accelerator_kind uses,
				 const struct nf_setting *setting)
{
	struct requesting made = requesting(name, uses, setting, 1);

	assert_null(made.bench);
	requesting_end(&made, uses);
}

#endif
