/*
 * An accelerator that serves request queues round robin, as a NIC's regex or compression engine
 * does (Tomur, section 4.1.1).
 *
 * A user attaches one or more queues, submits jobs, and collects them when they are complete. Jobs
 * are served by a thread on a core of its own (accelerator_serve_until) or, without one, by the
 * user while it collects. Any thread may attach and detach queues while others are served. A
 * backend runs the jobs: one file each in this folder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/nf.h"
#include "core/rules.h"

#define ACCELERATOR_MOST_QUEUES 64
#define ACCELERATOR_MOST_DEPTH 4096
#define ACCELERATOR_SHORT 74 /* bytes of a match that is short */

struct accelerator_queue;

/* A request. It belongs to the accelerator from submit to collect. */
struct accelerator_job {
	const uint8_t *input;
	uint32_t length;
	uint16_t before, behind; /* regex: bytes of the input that are around a payload */
	uint8_t *output;   /* output buffer for compression; unused by regex */
	uint32_t room;     /* size of the output buffer */
	uint32_t produced; /* regex: matching rules; compression: bytes of output */
	int32_t rule;      /* regex: the lowest matching rule, or -1 */
	uint32_t classes;  /* regex: a bit per class (core/rules.h) of the matching rules */
	int32_t status;    /* 0, or a negative errno: -ENOSPC if the output buffer is too small */
	bool settled;      /* regex: no rule matched before the payload, and no match that is not
			      short can have begun there; when it is completed, the same of its end */
	void *owner;       /* for the submitter */
	struct accelerator_queue *queue; /* set by submit */
};

/* Create an accelerator of a kind with the first backend that works; NULL after printing why. */
struct accelerator *accelerator_create(enum accelerator_kind kind);
/* Create it with a named backend: "hyperscan", "deflate", "doca-regex", ... */
struct accelerator *accelerator_create_by(const char *backend);
/* One for regular expressions with the rules of a file, tables/rule_file.h, in the name of `of`. */
struct accelerator *accelerator_create_rules(const char *of, const char *path);
void accelerator_destroy(struct accelerator *accelerator);
/* Bytes of the widest match of a rule; UINT32_MAX: any number, or the backend does not know. */
uint32_t accelerator_span(const struct accelerator *accelerator);
const char *accelerator_backend(const struct accelerator *accelerator);

/* A queue for at most `depth` requests under way; NULL after printing why. */
struct accelerator_queue *accelerator_attach(struct accelerator *accelerator, unsigned int depth);
/* All jobs of the queue must have been collected. */
void accelerator_detach(struct accelerator_queue *queue);

/* Submit up to `n` jobs; returns how many were accepted, fewer if `depth` are under way. */
uint16_t accelerator_submit(struct accelerator_queue *queue, struct accelerator_job **jobs,
			    uint16_t n);
/* Collect up to `n` completed jobs; serves requests itself if no other thread does. */
uint16_t accelerator_collect(struct accelerator_queue *queue, struct accelerator_job **jobs,
			     uint16_t n);
unsigned int accelerator_under_way(const struct accelerator_queue *queue);

/* Serve one request of each non-empty queue; returns how many were served. */
unsigned int accelerator_serve(struct accelerator *accelerator);
/* Serve until `*stop`, on an lcore of its own. Meanwhile users do not serve. */
void accelerator_serve_until(struct accelerator *accelerator, const bool *stop);

/*
 * Backends run the jobs of an accelerator: one file each, which registers itself.
 *
 * A card accepts jobs and completes them later: `submit` returns TAKEN, and `poll` returns
 * completed jobs in the order of submission. A library runs a job at once: `submit` returns DONE,
 * and there is no `poll`. Only one thread at a time calls a backend.
 */
enum backend_status {
	BACKEND_DONE,  /* the job's results and status are set */
	BACKEND_TAKEN, /* `poll` will return it, possibly with a negative status */
	BACKEND_FULL,  /* not accepted: poll, then submit again */
};

struct accelerator_backend {
	const char *name;
	const char *help;
	enum accelerator_kind kind;
	int preference; /* the working backend with the highest one is used */

	/* NULL after printing why: no such device, no memory. */
	void *(*create)(void);
	/*
	 * The same with other rules than those of core/rules.h, which are only used now; and why it
	 * cannot have an expression, in memory that the caller frees. NULL without such rules.
	 */
	void *(*create_rules)(const struct rule_set *set);
	char *(*fault)(const char *expression);
	enum backend_status (*submit)(void *state, struct accelerator_job *job);
	/* See accelerator_span(); NULL: it does not know. */
	uint32_t (*span)(void *state);
	/* Up to `n` completed jobs. NULL if `submit` never returns TAKEN. */
	uint16_t (*poll)(void *state, struct accelerator_job **jobs, uint16_t n);
	void (*destroy)(void *state);

	struct accelerator_backend *next;
};

/* Clear the results of a job before it runs. */
static inline void backend_begin(struct accelerator_job *job)
{
	job->produced = 0;
	job->settled = false;
	job->rule = -1;
	job->classes = 0;
}

/* Note that a rule of a class matched; each rule once per job. */
static inline void backend_matched_class(struct accelerator_job *job, uint32_t rule,
					 enum rule_class class)
{
	job->produced++;
	if (job->rule < 0 || (int32_t)rule < job->rule)
		job->rule = (int32_t)rule;
	if (class < RULE_CLASSES)
		job->classes |= 1u << class;
}

/* The same of a rule of core/rules.h. */
static inline void backend_matched(struct accelerator_job *job, uint32_t rule)
{
	unsigned int n;
	const struct rule *all = rules(&n);

	backend_matched_class(job, rule, rule < n ? all[rule].class : RULE_CLASSES);
}

void backend_register(struct accelerator_backend *backend);

/* The backends by falling preference; NULL after the last. */
const struct accelerator_backend *backend_first(void);

#define BACKEND_REGISTER(backend)                                                                  \
	__attribute__((constructor)) static void backend_register_##backend(void)                  \
	{                                                                                          \
		backend_register(&(backend));                                                      \
	}

/* A backend of this name, in a variable; the rest are members of accelerator_backend. */
#define BACKEND(variable, backend_name, backend_help, ...)                                         \
	static struct accelerator_backend variable = {                                             \
		.name = backend_name, .help = backend_help, __VA_ARGS__};                          \
	BACKEND_REGISTER(variable)
