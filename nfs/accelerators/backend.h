/*
 * Backends run the jobs of an accelerator: one file each, which registers itself.
 *
 * A card accepts jobs and completes them later: `submit` returns TAKEN, and `poll` returns
 * completed jobs in the order of submission. A library runs a job at once: `submit` returns DONE,
 * and there is no `poll`. Only one thread at a time calls a backend.
 */
#pragma once

#include "accelerators/accelerator.h"
#include "core/rules.h"

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
	/* Up to `n` completed jobs. NULL if `submit` never returns TAKEN. */
	uint16_t (*poll)(void *state, struct accelerator_job **jobs, uint16_t n);
	void (*destroy)(void *state);

	struct accelerator_backend *next;
};

/* Clear the results of a job before it runs. */
static inline void backend_begin(struct accelerator_job *job)
{
	job->produced = 0;
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
