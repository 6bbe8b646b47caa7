/*
 * Backends run the jobs of an accelerator: one file each, which registers itself.
 *
 * A card accepts jobs and completes them later: `submit` returns TAKEN, and `poll` returns
 * completed jobs in the order of submission. A library runs a job at once: `submit` returns DONE,
 * and there is no `poll`. Only one thread at a time calls a backend.
 */
#ifndef NFS_ACCELERATORS_BACKEND_H
#define NFS_ACCELERATORS_BACKEND_H

#include "accelerators/accelerator.h"

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
	enum backend_status (*submit)(void *state, struct accelerator_job *job);
	/* Up to `n` completed jobs. NULL if `submit` never returns TAKEN. */
	uint16_t (*poll)(void *state, struct accelerator_job **jobs, uint16_t n);
	void (*destroy)(void *state);

	struct accelerator_backend *next;
};

void backend_register(struct accelerator_backend *backend);

/* The backends by falling preference; NULL after the last. */
const struct accelerator_backend *backend_first(void);

#define BACKEND_REGISTER(backend)                                                                  \
	__attribute__((constructor)) static void backend_register_##backend(void)                  \
	{                                                                                          \
		backend_register(&(backend));                                                      \
	}

#endif
