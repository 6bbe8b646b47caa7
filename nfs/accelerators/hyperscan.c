/* Scans payloads with Hyperscan: all rules in one database, each rule reported once per payload. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include <hs/hs.h>

#include "accelerators/backend.h"
#include "core/memory.h"
#include "core/rules.h"

#define MOST_RULES 256

struct hyperscan {
	const hs_database_t *database; /* shared: scans only read it */
	hs_scratch_t *scratch;         /* scratch space of the serving thread: one at a time */
};

static hs_database_t *compiled(void)
{
	const char *expressions[MOST_RULES];
	unsigned int flags[MOST_RULES], ids[MOST_RULES], n;
	const struct rule *all = rules(&n);
	hs_database_t *database = NULL;
	hs_compile_error_t *error;

	for (unsigned int i = 0; i < n && i < MOST_RULES; i++) {
		expressions[i] = all[i].expression;
		flags[i] = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH;
		ids[i] = i;
	}
	if (n > MOST_RULES) {
		fprintf(stderr, "hyperscan: %u rules exceed the limit of %d\n", n, MOST_RULES);
		return NULL;
	}
	if (hs_compile_multi(expressions, flags, ids, n, HS_MODE_BLOCK, NULL, &database, &error) !=
	    HS_SUCCESS) {
		fprintf(stderr, "hyperscan: rule %s: %s\n",
			error->expression < 0 ? "?" : all[error->expression].name, error->message);
		hs_free_compile_error(error);
	}
	return database;
}

/* The database of this process: compiling takes half a second, so accelerators share it. */
static const hs_database_t *shared(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static hs_database_t *database;

	pthread_mutex_lock(&lock);
	if (!database)
		database = compiled();
	pthread_mutex_unlock(&lock);
	return database;
}

static void destroy(void *state)
{
	struct hyperscan *hyperscan = state;

	hs_free_scratch(hyperscan->scratch);
	nf_free(hyperscan);
}

static void *create(void)
{
	struct hyperscan *hyperscan = nf_zalloc(sizeof(*hyperscan));
	hs_error_t error;

	if (!hyperscan) {
		fprintf(stderr, "hyperscan: no memory\n");
		return NULL;
	}
	hyperscan->database = shared();
	if (!hyperscan->database) {
		destroy(hyperscan);
		return NULL;
	}
	error = hs_alloc_scratch(hyperscan->database, &hyperscan->scratch);
	if (error != HS_SUCCESS) {
		fprintf(stderr, "hyperscan: no scratch space: error %d\n", error);
		destroy(hyperscan);
		return NULL;
	}
	return hyperscan;
}

static int matched(unsigned int rule, unsigned long long from, unsigned long long to,
		   unsigned int flags, void *context)
{
	(void)from, (void)to, (void)flags;
	backend_matched(context, rule);
	return 0;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	const struct hyperscan *hyperscan = state;

	backend_begin(job);
	job->status = hs_scan(hyperscan->database, (const char *)job->input, job->length, 0,
			      hyperscan->scratch, matched, job) == HS_SUCCESS
			      ? 0
			      : -EIO;
	return BACKEND_DONE;
}

static struct accelerator_backend backend = {
	.name = "hyperscan",
	.help = "Hyperscan, on the serving core",
	.kind = ACCELERATOR_REGEX,
	.preference = 10,
	.create = create,
	.submit = submit,
	.destroy = destroy,
};

BACKEND_REGISTER(backend)
