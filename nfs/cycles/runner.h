/*
 * A chain on one core behind a source of packets, whose cycles per packet are measured; a function
 * alone is a chain of one.
 *
 * What is timed is the chain, and the end where packets leave; not the source.
 */
#pragma once

#include "core/chain.h"
#include "core/traffic.h"

#define RUNNER_BATCHES 12
#define RUNNER_ROUNDS 11 /* in a batch */
#define RUNNER_MOST 8 /* functions in a chain */

/* What a function leaves of its packets. */
struct effect {
	bool parsed;  /* their headers are known */
	bool changed; /* they are others, or their data begins or ends elsewhere */
};

struct runner {
	const struct nf_kind *kinds[RUNNER_MOST]; /* the functions, in order */
	unsigned int n;
	/* those that process packets before time is taken; and whether headers are parsed then */
	const struct nf_kind *makers[RUNNER_MOST];
	unsigned int n_makers;
	bool parsed;

	struct effect effect;           /* of all its functions */
	double visits[RUNNER_MOST];     /* packets that reach each, per packet that enters */
	double rounds[RUNNER_ROUNDS];   /* cycles per packet, of the current batch */
	double medians[RUNNER_BATCHES]; /* of each batch */

	struct chain *chain;
	struct nf *making[RUNNER_MOST]; /* of the kinds in `makers` */
	uint64_t now_us;
	int bursts; /* in a round */
	/* a burst whose effect is of interest; NULL: none */
	const struct burst *watched;
};

/* Create functions and makers. False after printing why. */
bool runner_create(struct runner *runner, struct rte_mempool *spare);
void runner_destroy(struct runner *runner);

/* Process each flow before time is taken, or as many as a second allows; sets the effect. */
void runner_warm(struct runner *runner, struct traffic *traffic, uint32_t flows);

/* Measure a round: about a millisecond. */
void runner_round(struct runner *runner, struct traffic *traffic, unsigned int round);

/* Complete a batch; also sets the visits, from all packets of this instance so far. */
void runner_batch(struct runner *runner, unsigned int batch);
