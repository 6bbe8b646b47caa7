/*
 * Network functions, and how to add one.
 *
 * A network function is one file in functions/: a `process` over a burst of packets, its
 * parameters, its counters, and NF_REGISTER. No other file needs an edit; to copy:
 * examples/extend/port_counter.c. core/chain.h runs functions one after the other, testbed/ has the
 * loop that measures them; tests/ gives them packets and checks packets and counters that come out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include "core/metadata.h"
#include "core/parameters.h"

#define NF_BURST 32
#define NF_MOST_OUT 2048
#define NF_MOST_PARAMETERS 16
#define NF_MOST_COUNTERS 32

struct accelerator;
struct nf;

/* How a function with accelerators executes; sets of them are sums. */
enum nf_execution { NF_RUN_TO_COMPLETION = 1, NF_PIPELINE = 2 };

/* Kinds of accelerators and their names, in the order in which a packet visits them. */
#define ACCELERATORS(_) _(REGEX, "regex") _(COMPRESSION, "compression") _(DMA, "dma")

#define ACCELERATOR_OF(kind, name) ACCELERATOR_##kind,
enum accelerator_kind { ACCELERATORS(ACCELERATOR_OF) ACCELERATOR_KINDS };

#define NF_USES(kind) (1u << (kind))

/* Packets to send, 64 per received packet; those beyond are freed and counted here. */
struct nf_out {
	uint32_t n;
	uint32_t overflowed;
	struct rte_mbuf *packets[NF_MOST_OUT];
};

struct nf_counter {
	const char *name;
	const char *help;
};

/*
 * Parameters of functions that look at packets, and the counters of nf_other(): what becomes of
 * frames that the function does not understand, and of ARP.
 */
#define NF_OTHER_PARAMETERS(at, unknown_frames, arp_frames)                                        \
	[at] = {"unknown", "frames that are not understood: pass, or drop",                        \
		.text = (unknown_frames)},                                                         \
	[(at) + 1] = {"arp", "ARP: pass, or drop", .text = (arp_frames)}
#define NF_IPV6                                                                                    \
	"ipv6", "IPv6: read; or pass, or drop all of it unread, as cards and switches of racks do", \
		.text = "read"
#define NF_OTHER_COUNTERS(at)                                                                      \
	[at] = {"other", "frames that are not understood, and ARP, sent on as they are"},          \
	[(at) + 1] = {"unknown", "frames that are not understood, or ARP, freed as set"},          \
	[(at) + 2] = {"malformed", "packets freed"}

/* A kind of network function; every instance has its counters in the order declared here. */
struct nf_kind {
	const char *name;
	const char *help;
	unsigned int accelerators;           /* sum of NF_USES() */
	unsigned int executions;             /* sum of enum nf_execution; 0: run to completion */
	enum nf_execution default_execution; /* of several; 0: run to completion if possible */
	bool alters; /* writes into payloads, which a source that reuses packets must renew */
	bool reads_payloads; /* decides by payloads, without an accelerator */
	const struct nf_parameter *parameters;
	unsigned int n_parameters;
	const struct nf_counter *counters;
	unsigned int n_counters;

	/* Of `nf->state`, which is zeroed before create(), and freed after destroy(); 0: none. */
	size_t state_bytes;
	/*
	 * Make `nf->state` from `nf->settings`; 0, or a negative errno after printing why. Then
	 * destroy() follows all the same, if there are `state_bytes`. NULL: as it is.
	 */
	int (*create)(struct nf *nf);
	/*
	 * Take over `n` (at most NF_BURST) packets: each is sent to `out`, by a gate of
	 * core/metadata.h, freed, or held and sent in a later call.
	 */
	void (*process)(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
	/*
	 * Send what accelerators have finished, without waiting, and free what has timed out; NULL
	 * if nothing is held.
	 */
	void (*poll)(struct nf *nf, struct nf_out *out);
	/* Send or free all held packets, waiting for accelerators; NULL if none are held. */
	void (*flush)(struct nf *nf, struct nf_out *out);
	/*
	 * Take over from an instance with other tables what it knows of flows, which is destroyed
	 * next; NULL if nothing. Counters are taken over, too.
	 */
	void (*take_over)(struct nf *nf, struct nf *from);
	/* The numbered gates of an instance, from NF_BRANCH on; NULL: none. */
	unsigned int (*branches)(const struct nf *nf);
	/* Free what `nf->state` has beside itself; NULL if nothing. */
	void (*destroy)(struct nf *nf);

	struct nf_kind *next;
};

/* An instance of a network function. Only one thread at a time uses it. */
struct nf {
	const struct nf_kind *kind;
	enum nf_execution execution;
	double settings[NF_MOST_PARAMETERS]; /* indexed like kind->parameters */
	char *texts[NF_MOST_PARAMETERS];     /* the same, of text parameters */
	uint64_t counters[NF_MOST_COUNTERS]; /* indexed like kind->counters */
	bool passes_unknown, passes_arp; /* by NF_OTHER_PARAMETERS */
	bool leaves_ipv6_unread, passes_ipv6; /* by that of NF_IPV6 */
	uint32_t n_rules;          /* set by kinds that count how often each decided */
	uint64_t *rule_counts;     /* NULL unless nf_count_rules() */
	uint64_t now_us;           /* the caller's clock, set before each burst; never 0 */
	struct rte_mempool *spare; /* for packets that the function creates */
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	int socket;
	uint64_t first; /* what initialization vectors count from */
	void *state;
};

/* Configuration of an instance. */
struct nf_config {
	const char *name;            /* of the kind */
	enum nf_execution execution; /* 0: the kind's default */
	struct rte_mempool *spare;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	/*
	 * Initialization vectors begin at random, so that they do not repeat those of an earlier
	 * instance with the same key. Otherwise they are the same in each run.
	 */
	bool begins_at_random;
};

void nf_register(struct nf_kind *kind);

#define NF_REGISTER(kind)                                                                          \
	__attribute__((constructor)) static void nf_register_##kind(void)                          \
	{                                                                                          \
		nf_register(&(kind));                                                              \
	}

/* The kind of a file that has `parameters` and `counters`; the rest are members of nf_kind. */
#define NF_KIND(nf_name, nf_help, ...)                                                             \
	static struct nf_kind kind = {                                                             \
		.name = nf_name,                                                                   \
		.help = nf_help,                                                                   \
		.parameters = parameters,                                                          \
		.n_parameters = RTE_DIM(parameters),                                               \
		.counters = counters,                                                              \
		.n_counters = RTE_DIM(counters),                                                   \
		__VA_ARGS__,                                                                       \
	};                                                                                         \
	NF_REGISTER(kind)

/* The kinds in the order of their names; NULL after the last. */
const struct nf_kind *nf_first(void);
const struct nf_kind *nf_find(const char *name);

/*
 * A new instance; NULL after printing why: unknown kind or parameter, value out of range,
 * unsupported execution, missing accelerator, no memory.
 */
struct nf *nf_create(const struct nf_config *config, const struct nf_setting *settings,
		     unsigned int n_settings);
void nf_destroy(struct nf *nf);

/* Count from now on how often each rule decides, if the kind can. False without memory. */
bool nf_count_rules(struct nf *nf);

/* Process one burst; see nf_kind.process. */
static inline void nf_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n,
			      struct nf_out *out)
{
	nf->kind->process(nf, packets, n, out);
}

/* The numbered gates by which packets may leave. */
unsigned int nf_branches(const struct nf *nf);

void nf_poll(struct nf *nf, struct nf_out *out);
void nf_flush(struct nf *nf, struct nf_out *out);

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

/* Free a packet, for a reason that is counted. */
static inline void nf_drop(struct nf *nf, struct rte_mbuf *packet, unsigned int counter)
{
	nf->counters[counter]++;
	rte_pktmbuf_free(packet);
}

/* Send on or free a frame that is not understood, or malformed; `counter`: NF_OTHER_COUNTERS. */
void nf_other(struct nf *nf, struct rte_mbuf *packet, enum packet_type type, unsigned int counter,
	      struct nf_out *out);

/* Free the sent packets, as a port does after transmission. */
void nf_out_free(struct nf_out *out);
