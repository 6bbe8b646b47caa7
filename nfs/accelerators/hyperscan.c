/* Scans payloads with Hyperscan: all rules in one database, each rule reported once per payload. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hs/hs.h>

#include "accelerators/accelerator.h"
#include "core/memory.h"
#include "core/rules.h"

#define FLAGS (HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH)

struct hyperscan {
	const hs_database_t *database; /* shared: scans only read it; or `own` */
	hs_database_t *own;            /* of the rules of a file; NULL: those of core/rules.h */
	uint8_t *classes;              /* of these rules */
	hs_scratch_t *scratch;         /* scratch space of the serving thread: one at a time */
};

static hs_database_t *compile(const struct rule_set *set, const char **expressions,
			      unsigned int *flags, unsigned int *ids)
{
	hs_database_t *database = NULL;
	hs_compile_error_t *error;

	for (unsigned int i = 0; i < set->n; i++) {
		expressions[i] = set->rules[i].expression;
		flags[i] = FLAGS;
		ids[i] = i;
	}
	if (hs_compile_multi(expressions, flags, ids, set->n, HS_MODE_BLOCK, NULL, &database,
			     &error) != HS_SUCCESS) {
		fprintf(stderr, "hyperscan: rule %s: %s\n",
			error->expression < 0 ? "?" : set->rules[error->expression].name,
			error->message);
		hs_free_compile_error(error);
	}
	return database;
}

/* NULL after printing why. */
static hs_database_t *compiled(const struct rule_set *set)
{
	const char **expressions = calloc(set->n, sizeof(*expressions));
	unsigned int *flags = calloc(set->n, sizeof(*flags)), *ids = calloc(set->n, sizeof(*ids));
	hs_database_t *database = NULL;

	if (expressions && flags && ids)
		database = compile(set, expressions, flags, ids);
	else
		fprintf(stderr, "hyperscan: no memory for %u rules\n", set->n);
	free(expressions);
	free(flags);
	free(ids);
	return database;
}

/* The database of this process: compiling takes half a second, so accelerators share it. */
static const hs_database_t *shared(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static hs_database_t *database;
	struct rule_set set;

	set.rules = rules(&set.n);
	pthread_mutex_lock(&lock);
	if (!database)
		database = compiled(&set);
	pthread_mutex_unlock(&lock);
	return database;
}

static void destroy(void *state)
{
	struct hyperscan *hyperscan = state;

	hs_free_scratch(hyperscan->scratch);
	hs_free_database(hyperscan->own);
	free(hyperscan->classes);
	nf_free(hyperscan);
}

/* Compile the rules of a file; false after printing why. */
static bool make_own(struct hyperscan *hyperscan, const struct rule_set *set)
{
	hyperscan->classes = malloc(set->n);
	if (!hyperscan->classes) {
		fprintf(stderr, "hyperscan: no memory for %u rules\n", set->n);
		return false;
	}
	for (unsigned int i = 0; i < set->n; i++)
		hyperscan->classes[i] = (uint8_t)set->rules[i].class;
	hyperscan->own = compiled(set);
	return hyperscan->own != NULL;
}

static void *create_rules(const struct rule_set *set)
{
	struct hyperscan *hyperscan = nf_zalloc(sizeof(*hyperscan));
	hs_error_t error;

	if (!hyperscan) {
		fprintf(stderr, "hyperscan: no memory\n");
		return NULL;
	}
	if (set && !make_own(hyperscan, set)) {
		destroy(hyperscan);
		return NULL;
	}
	hyperscan->database = set ? hyperscan->own : shared();
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

static void *create(void)
{
	return create_rules(NULL);
}

static char *fault(const char *expression)
{
	hs_database_t *database = NULL;
	hs_compile_error_t *error;
	char *why = NULL;

	if (hs_compile(expression, FLAGS, HS_MODE_BLOCK, NULL, &database, &error) != HS_SUCCESS) {
		why = strdup(error->message);
		hs_free_compile_error(error);
	}
	hs_free_database(database);
	return why;
}

/* A scan under way. */
struct scan {
	const struct hyperscan *hyperscan;
	struct accelerator_job *job;
};

static int matched(unsigned int rule, unsigned long long from, unsigned long long to,
		   unsigned int flags, void *context)
{
	const struct scan *scan = context;
	const uint8_t *classes = scan->hyperscan->classes;

	(void)from, (void)to, (void)flags;
	if (classes)
		backend_matched_class(scan->job, rule, (enum rule_class)classes[rule]);
	else
		backend_matched(scan->job, rule);
	return 0;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct scan scan = {.hyperscan = state, .job = job};

	backend_begin(job);
	job->status = hs_scan(scan.hyperscan->database, (const char *)job->input, job->length, 0,
			      scan.hyperscan->scratch, matched, &scan) == HS_SUCCESS
			      ? 0
			      : -EIO;
	return BACKEND_DONE;
}

BACKEND(backend, "hyperscan", "Hyperscan, on the serving core", .kind = ACCELERATOR_REGEX,
	.preference = 10, .create = create, .create_rules = create_rules, .fault = fault,
	.submit = submit, .destroy = destroy)
