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
	uint8_t *found;                /* by a rule: it matched in the payload alone */
	unsigned int n;                /* of these rules */
	bool anchored;                 /* a rule has an anchor: payloads are scanned alone, too */
	uint32_t span;                 /* bytes of the widest match */
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

/* The bytes of the widest match of the rules; UINT32_MAX: any number. */
static uint32_t span_of(const struct rule_set *set)
{
	uint32_t span = 1;

	for (unsigned int i = 0; i < set->n; i++) {
		hs_expr_info_t *info = NULL;
		hs_compile_error_t *error;

		if (hs_expression_info(set->rules[i].expression, FLAGS, &info, &error) !=
		    HS_SUCCESS) {
			hs_free_compile_error(error);
			return UINT32_MAX;
		}
		span = RTE_MAX(span, info->max_width);
		free(info);
	}
	return span;
}

/* Whether an expression may be anchored to an end or to a word's; it may have an anchor's letter. */
static bool may_be_anchored(const char *expression)
{
	for (const char *at = expression; *at; at++) {
		if (*at == '\\' && at[1]) {
			at++;
			if (strchr("AbBGzZ", *at))
				return true;
		} else if (*at == '[' && at[1] == '^') {
			at++;
		} else if (*at == '^' || *at == '$') {
			return true;
		}
	}
	return false;
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
static const hs_database_t *shared(uint32_t *span)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static hs_database_t *database;
	static uint32_t widest;
	struct rule_set set;

	set.rules = rules(&set.n);
	pthread_mutex_lock(&lock);
	if (!database) {
		database = compiled(&set);
		widest = span_of(&set);
	}
	*span = widest;
	pthread_mutex_unlock(&lock);
	return database;
}

static void destroy(void *state)
{
	struct hyperscan *hyperscan = state;

	hs_free_scratch(hyperscan->scratch);
	hs_free_database(hyperscan->own);
	free(hyperscan->classes);
	free(hyperscan->found);
	nf_free(hyperscan);
}

/* Compile the rules of a file; false after printing why. */
static bool make_own(struct hyperscan *hyperscan, const struct rule_set *set)
{
	hyperscan->classes = malloc(set->n);
	hyperscan->found = calloc(set->n, 1);
	if (!hyperscan->classes || !hyperscan->found) {
		fprintf(stderr, "hyperscan: no memory for %u rules\n", set->n);
		return false;
	}
	for (unsigned int i = 0; i < set->n; i++) {
		hyperscan->classes[i] = (uint8_t)set->rules[i].class;
		hyperscan->anchored |= may_be_anchored(set->rules[i].expression);
	}
	hyperscan->n = set->n;
	hyperscan->span = span_of(set);
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
	hyperscan->database = set ? hyperscan->own : shared(&hyperscan->span);
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
	bool alone; /* the payload, before what is around it is scanned with it */
};

static int matched(unsigned int rule, unsigned long long from, unsigned long long to,
		   unsigned int flags, void *context)
{
	const struct scan *scan = context;
	const uint8_t *classes = scan->hyperscan->classes;

	(void)from, (void)to, (void)flags;
	if (unlikely(scan->hyperscan->anchored)) {
		uint8_t *found = &scan->hyperscan->found[rule];

		if (*found)
			return 0;
		*found = scan->alone;
	}
	if (classes)
		backend_matched_class(scan->job, rule, (enum rule_class)classes[rule]);
	else
		backend_matched(scan->job, rule);
	return 0;
}

static void run(struct scan *scan, const uint8_t *input, uint32_t length)
{
	const struct hyperscan *hyperscan = scan->hyperscan;

	if (hs_scan(hyperscan->database, (const char *)input, length, 0, hyperscan->scratch,
		    matched, scan) != HS_SUCCESS)
		scan->job->status = -EIO;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct hyperscan *hyperscan = state;
	struct scan scan = {.hyperscan = hyperscan, .job = job};

	backend_begin(job);
	job->status = 0;
	if (unlikely(hyperscan->anchored && job->before + job->behind > 0)) {
		scan.alone = true;
		run(&scan, job->input + job->before, job->length - job->before - job->behind);
		scan.alone = false;
	}
	run(&scan, job->input, job->length);
	if (unlikely(hyperscan->anchored && job->produced > 0))
		memset(hyperscan->found, 0, hyperscan->n);
	return BACKEND_DONE;
}

static uint32_t span(void *state)
{
	return ((const struct hyperscan *)state)->span;
}

BACKEND(backend, "hyperscan", "Hyperscan, on the serving core", .kind = ACCELERATOR_REGEX,
	.preference = 10, .create = create, .create_rules = create_rules, .fault = fault,
	.submit = submit, .span = span, .destroy = destroy)
