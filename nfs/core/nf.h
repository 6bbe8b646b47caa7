/*
 * What a network function is, and how one is added.
 *
 * A network function is one file: a `process` over a burst of packets, its parameters, its
 * counters, and NF_REGISTER. Whoever runs it offers bursts and does with what it sends as it
 * likes; see testbed/ for the loop that measures, tests/ for packets in, packets out.
 */
#ifndef NFS_CORE_NF_H
#define NFS_CORE_NF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include "core/parameters.h"

#define NF_BURST 32
#define NF_MOST_OUT 2048
#define NF_MOST_PARAMETERS 12
#define NF_MOST_COUNTERS 24

struct accelerator;
struct nf;

/* Sides of a two-port function: `packet->port` on the way in, and where it goes on the way out. */
enum nf_port { NF_INSIDE = 0, NF_OUTSIDE = 1 };

/* How a function that uses accelerators executes; a set of these is a sum. */
enum nf_execution { NF_RUN_TO_COMPLETION = 1, NF_PIPELINE = 2 };

enum accelerator_kind { ACCELERATOR_REGEX, ACCELERATOR_COMPRESSION, ACCELERATOR_KINDS };

#define NF_USES(kind) (1u << (kind))

/* The packets that leave, 64 for each that came: what does not fit is freed and counted here. */
struct nf_out {
	uint32_t n;
	uint32_t overflowed;
	struct rte_mbuf *packets[NF_MOST_OUT];
};

struct nf_counter {
	const char *name;
	const char *help;
};

/* A kind of network function; the counters of every instance stand in the order declared here. */
struct nf_kind {
	const char *name;
	const char *help;
	unsigned int accelerators;           /* sum of NF_USES() */
	unsigned int executions;             /* sum of enum nf_execution; 0: run to completion */
	enum nf_execution default_execution; /* of several; 0: run to completion, if it can */
	const struct nf_parameter *parameters;
	unsigned int n_parameters;
	const struct nf_counter *counters;
	unsigned int n_counters;

	/* Allocate `nf->state` from `nf->settings`. 0, or a negative errno after printing why. */
	int (*create)(struct nf *nf);
	/*
	 * Take over `n` (at most NF_BURST) packets: each is sent to `out`, freed, or kept for a
	 * while by a pipeline, which sends it in a later call.
	 */
	void (*process)(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
	/* Send or free everything that is kept, waiting for accelerators; NULL if nothing ever is.
	 */
	void (*drain)(struct nf *nf, struct nf_out *out);
	void (*destroy)(struct nf *nf);

	struct nf_kind *next;
};

/* An instance of a network function. It belongs to one thread at a time. */
struct nf {
	const struct nf_kind *kind;
	enum nf_execution execution;
	double settings[NF_MOST_PARAMETERS]; /* by the order of kind->parameters */
	uint64_t counters[NF_MOST_COUNTERS]; /* by the order of kind->counters */
	uint64_t now_us;                     /* the caller's clock, set before each burst; not 0 */
	struct rte_mempool *spare;           /* for packets that the function makes */
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	int socket;
	void *state;
};

/* What an instance is made with. */
struct nf_config {
	const char *name;            /* of the kind */
	enum nf_execution execution; /* 0: the kind's usual one */
	struct rte_mempool *spare;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
};

void nf_register(struct nf_kind *kind);

#define NF_REGISTER(kind)                                                                          \
	__attribute__((constructor)) static void nf_register_##kind(void)                          \
	{                                                                                          \
		nf_register(&(kind));                                                              \
	}

/* The kinds, in the order of their names; NULL after the last. */
const struct nf_kind *nf_first(void);
const struct nf_kind *nf_find(const char *name);

/*
 * A new instance; NULL after printing why on stderr: no such kind or parameter, a value out of
 * range, an execution that the kind cannot do, an accelerator that is missing, no memory.
 */
struct nf *nf_create(const struct nf_config *config, const struct nf_setting *settings,
		     unsigned int n_settings);
void nf_destroy(struct nf *nf);

/* Offer a burst at a time; see nf_kind.process. */
static inline void nf_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n,
			      struct nf_out *out)
{
	nf->kind->process(nf, packets, n, out);
}

void nf_drain(struct nf *nf, struct nf_out *out);

static inline void nf_send(struct nf_out *out, struct rte_mbuf *packet)
{
	if (likely(out->n < NF_MOST_OUT)) {
		out->packets[out->n++] = packet;
		return;
	}
	out->overflowed++;
	rte_pktmbuf_free(packet);
}

static inline void nf_send_bulk(struct nf_out *out, struct rte_mbuf *const *packets, uint16_t n)
{
	if (likely(out->n + n <= NF_MOST_OUT)) {
		memcpy(out->packets + out->n, packets, n * sizeof(*packets));
		out->n += n;
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		nf_send(out, packets[i]);
}

/* Free what was sent, as a port does once it is on the wire. */
void nf_out_free(struct nf_out *out);

#endif
