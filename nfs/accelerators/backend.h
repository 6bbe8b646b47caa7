/*
 * What runs the jobs of an accelerator: one file each, which registers itself.
 *
 * A card takes jobs and tells later that they are done: `submit` answers TAKEN, and `poll` hands
 * them back in the order in which they were taken. A library runs a job at once: `submit` answers
 * DONE, and there is no `poll`. Only one thread at a time calls a backend.
 */
#ifndef NFS_ACCELERATORS_BACKEND_H
#define NFS_ACCELERATORS_BACKEND_H

#include "accelerators/accelerator.h"

enum backend_status {
	BACKEND_DONE,  /* the job's results and status are set */
	BACKEND_TAKEN, /* `poll` will answer it, were it with a negative status */
	BACKEND_FULL,  /* not taken: poll first, then try again */
};

struct accelerator_backend {
	const char *name;
	const char *help;
	enum accelerator_kind kind;
	int preference; /* the highest that works is used */

	/* NULL after printing why: no such device, no memory. */
	void *(*create)(void);
	enum backend_status (*submit)(void *state, struct accelerator_job *job);
	/* At most `n` jobs that were taken and are done. NULL where none is ever taken. */
	uint16_t (*poll)(void *state, struct accelerator_job **jobs, uint16_t n);
	void (*destroy)(void *state);

	struct accelerator_backend *next;
};

void backend_register(struct accelerator_backend *backend);

/* The backends, the most preferred first; NULL after the last. */
const struct accelerator_backend *backend_first(void);

#define BACKEND_REGISTER(backend)                                                                  \
	__attribute__((constructor)) static void backend_register_##backend(void)                  \
	{                                                                                          \
		backend_register(&(backend));                                                      \
	}

#endif
