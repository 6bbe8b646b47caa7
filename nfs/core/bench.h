/*
 * A contention bench: work without packets that loads one resource at a given rate.
 *
 * Like a network function, a bench is one file that registers itself. `step` does a small piece of
 * work (some microseconds) and returns its amount; core/pace.h keeps the rate.
 */
#pragma once

#include "core/nf.h"

struct bench_kind;

struct bench {
	const struct bench_kind *kind;
	double settings[NF_MOST_PARAMETERS]; /* indexed like kind->parameters */
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	void *state;
};

struct bench_kind {
	const char *name;
	const char *help;
	const char *unit; /* the unit of work: "accesses", "requests" */
	unsigned int accelerators;
	const struct nf_parameter *parameters;
	unsigned int n_parameters;

	int (*create)(struct bench *bench); /* NULL, and no destroy(): without state */
	/* The work done; 0 if it is ahead of its rate. */
	uint64_t (*step)(struct bench *bench);
	void (*destroy)(struct bench *bench);

	struct bench_kind *next;
};

void bench_register(struct bench_kind *kind);

#define BENCH_REGISTER(kind)                                                                       \
	__attribute__((constructor)) static void bench_register_##kind(void)                       \
	{                                                                                          \
		bench_register(&(kind));                                                           \
	}

/* The kinds in the order of their names; NULL after the last. */
const struct bench_kind *bench_first(void);
const struct bench_kind *bench_find(const char *name);

/* A new bench; NULL after printing why, as nf_create does. */
struct bench *bench_create(const char *name, struct accelerator *const *accelerators,
			   const struct nf_setting *settings, unsigned int n_settings);
void bench_destroy(struct bench *bench);

static inline uint64_t bench_step(struct bench *bench)
{
	return bench->kind->step(bench);
}
