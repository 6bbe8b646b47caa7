/* Scans payloads with Hyperscan: all rules in one database, each rule reported once per payload. */
#include <ctype.h>
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
#define SHORTEST_TEXT 3 /* bytes by which a mark is seldom seen elsewhere */

struct hyperscan {
	const hs_database_t *database; /* shared: scans only read it; or `own` */
	hs_database_t *own;            /* of the rules of a file; NULL: those of core/rules.h */
	uint8_t *classes;              /* of these rules */
	uint8_t *found;                /* by a rule: it matched in the payload alone */
	unsigned int n;        /* of the rules; behind them are begins (n) and ends (n + 1) */
	bool marked;           /* all rules that are not short have one of these */
	bool settles;          /* and so it is known when only a short match can have begun */
	bool anchored;         /* a rule has an anchor: payloads are scanned alone, too */
	uint32_t span;         /* bytes of the widest match */
	hs_scratch_t *scratch; /* scratch space of the serving thread: one at a time */
};

/*
 * The most or the least bytes that match the first `n` characters of an expression; UINT32_MAX: any
 * number.
 */
static uint32_t width_of(const char *expression, size_t n, bool most)
{
	char *begin = strndup(expression, n);
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *error;
	uint32_t width = most ? UINT32_MAX : 0;

	if (begin && hs_expression_info(begin, FLAGS, &info, &error) == HS_SUCCESS)
		width = most ? info->max_width : info->min_width;
	else if (begin)
		hs_free_compile_error(error);
	free(info);
	free(begin);
	return width;
}

/* The length of a class of characters, or of what a backslash begins; 0 if it is not known. */
static size_t character_length(const char *at)
{
	size_t n = 1 + (*at == '[' && at[1] == '^'), inner;

	if (*at == '\\')
		return at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
				       isxdigit((unsigned char)at[3])
			       ? 4
		       : !at[1] || (isalnum((unsigned char)at[1]) && !strchr("dDsSwWrnt", at[1]))
			       ? 0
			       : 2;
	if (*at != '[')
		return 1;
	if (at[n] == '[') /* as of `[[:alpha:]]`; later ones end the loop, too */
		return 0;
	do {
		inner = at[n] == '\\' ? character_length(at + n) : 1;
		n += inner;
	} while (inner > 0 && at[n] && !strchr("[]", at[n]));
	return at[n] == ']' ? n + 1 : 0;
}

/* The length of the first part of an expression with how often it comes; 0 if it is not known. */
static size_t part_length(const char *at)
{
	size_t n = *at == '(' ? 1 : character_length(at), inner;

	if (*at == '(') {
		for (; at[n] && at[n] != ')'; n += inner)
			if ((inner = at[n] == '|' ? 1 : part_length(at + n)) == 0)
				return 0;
		n += at[n] == ')';
	} else if (n == 0 || strchr("?*+{|)^$", *at)) {
		return 0;
	}
	if (at[n] == '{' && at[n + 1 + strspn(at + n + 1, "0123456789,")] == '}')
		n += strcspn(at + n, "}") + 1;
	else if (at[n] && strchr("?*+", at[n]))
		n++;
	return at[n] && strchr("?*+{", at[n]) ? 0 : n;
}

/* The most or the least bytes that match a part; Hyperscan is asked, which takes long, of few. */
static uint32_t part_width(const char *part, size_t length, bool most)
{
	return *part != '(' && character_length(part) == length ? 1 : width_of(part, length, most);
}

/* The bytes, at least, of the longest text in `n` characters of parts that hardly varies. */
static uint32_t text_length(const char *parts, size_t n)
{
	uint32_t length = 0, longest = 0;
	size_t more;

	for (size_t at = 0; at < n; at += more) {
		const char *part = parts + at;

		more = part_length(part);
		if (strchr("[.", *part) || (*part != '\\' && strchr("?*+}", part[more - 1])))
			length = 0;
		else
			length += part_width(part, more, false);
		longest = RTE_MAX(longest, length);
	}
	return longest;
}

/*
 * What each match of an expression ends or begins with, in at most ACCELERATOR_SHORT bytes, if that
 * is seldom seen elsewhere: of `[!-~]{1,99} HTTP` it is ` HTTP`, of `ed2k://[^|]{1,99}` it is
 * `ed2k://`. NULL if it is not known.
 */
static char *mark_of(const char *expression, bool *is_end)
{
	const size_t flags = strncmp(expression, "(?i)", 4) == 0 ? 4 : 0;
	size_t n = flags, begin = flags, end = flags, more, first;
	uint64_t width = 0, end_width = 0; /* of all parts so far, and of those from `end` on */
	uint32_t wide;

	for (; expression[n]; n += more) {
		more = part_length(expression + n);
		if (more == 0)
			return NULL;
		wide = part_width(expression + n, more, true);
		width += wide;
		end_width += wide;
		if (width <= ACCELERATOR_SHORT)
			begin = n + more;
		for (; end_width > ACCELERATOR_SHORT; end += first) {
			first = part_length(expression + end);
			end_width -= part_width(expression + end, first, true);
		}
	}
	*is_end = flags == 0 && text_length(expression + end, n - end) >= SHORTEST_TEXT;
	if (*is_end)
		return strdup(expression + end);
	return text_length(expression + flags, begin - flags) >= SHORTEST_TEXT
		       ? strndup(expression, begin)
		       : NULL;
}

/* Whether an expression may be anchored to an end or to a word's; it may have an anchor's letter.
 */
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

/*
 * Compile rules, and the marks of those that are not short; also set `span` and `marked` of `of`.
 * NULL after printing why.
 */
static hs_database_t *compile(const struct rule_set *set, const char **expressions,
			      unsigned int *flags, unsigned int *ids, struct hyperscan *of)
{
	hs_database_t *database = NULL;
	hs_compile_error_t *error;
	unsigned int n = set->n;

	of->marked = true;
	of->span = 1;
	for (unsigned int i = 0; i < 2 * set->n; i++) {
		flags[i] = FLAGS;
		ids[i] = i;
	}
	for (unsigned int i = 0; i < set->n; i++) {
		const uint32_t width = width_of(set->rules[i].expression, INT32_MAX, true);
		bool is_end = false;

		expressions[i] = set->rules[i].expression;
		of->span = RTE_MAX(of->span, width);
		if (!of->marked || width <= ACCELERATOR_SHORT)
			continue;
		expressions[n] = mark_of(expressions[i], &is_end);
		of->marked &= expressions[n] != NULL;
		ids[n++] = set->n + is_end;
	}
	if (of->marked && hs_compile_multi(expressions, flags, ids, n, HS_MODE_BLOCK, NULL,
					   &database, &error) != HS_SUCCESS) {
		hs_free_compile_error(error);
		of->marked = false;
	}
	if (!of->marked && hs_compile_multi(expressions, flags, ids, set->n, HS_MODE_BLOCK, NULL,
					    &database, &error) != HS_SUCCESS) {
		fprintf(stderr, "hyperscan: rule %s: %s\n",
			error->expression < 0 ? "?" : set->rules[error->expression].name,
			error->message);
		hs_free_compile_error(error);
	}
	while (n > set->n)
		free((char *)expressions[--n]);
	return database;
}

/* NULL after printing why. */
static hs_database_t *compiled(const struct rule_set *set, struct hyperscan *of)
{
	const char **expressions = calloc(2 * set->n, sizeof(*expressions));
	unsigned int *flags = calloc(2 * set->n, sizeof(*flags));
	unsigned int *ids = calloc(2 * set->n, sizeof(*ids));
	hs_database_t *database = NULL;

	if (expressions && flags && ids)
		database = compile(set, expressions, flags, ids, of);
	else
		fprintf(stderr, "hyperscan: no memory for %u rules\n", set->n);
	free(expressions);
	free(flags);
	free(ids);
	return database;
}

/* Use the database of this process: compiling takes half a second, so accelerators share it. */
static void share(struct hyperscan *hyperscan)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct hyperscan shared;
	struct rule_set set;

	set.rules = rules(&set.n);
	pthread_mutex_lock(&lock);
	if (!shared.database) {
		shared.database = compiled(&set, &shared);
		shared.n = set.n;
	}
	*hyperscan = shared;
	pthread_mutex_unlock(&lock);
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
	hyperscan->own = compiled(set, hyperscan);
	hyperscan->database = hyperscan->own;
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
	if (!set)
		share(hyperscan);
	if (!hyperscan->database) {
		destroy(hyperscan);
		return NULL;
	}
	hyperscan->settles = hyperscan->marked && !hyperscan->anchored;
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
	bool ended; /* a match that is not short may have ended */
};

static int matched(unsigned int rule, unsigned long long from, unsigned long long to,
		   unsigned int flags, void *context)
{
	struct scan *scan = context;
	const uint8_t *classes = scan->hyperscan->classes;

	(void)from, (void)to, (void)flags;
	if (rule >= scan->hyperscan->n) {
		scan->ended |= rule > scan->hyperscan->n;
		scan->job->settled &= rule > scan->hyperscan->n;
		return 0;
	}
	scan->job->settled = false;
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
		    matched, scan) != HS_SUCCESS) {
		scan->job->status = -EIO;
		scan->job->settled = false;
	}
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct hyperscan *hyperscan = state;
	struct scan scan = {.hyperscan = hyperscan, .job = job};
	uint32_t left_out = 0;

	if (job->settled && job->before > ACCELERATOR_SHORT)
		left_out = job->before - ACCELERATOR_SHORT;
	backend_begin(job);
	job->status = 0;
	job->settled = hyperscan->settles;
	if (unlikely(hyperscan->anchored && job->before + job->behind > 0)) {
		scan.alone = true;
		run(&scan, job->input + job->before, job->length - job->before - job->behind);
		scan.alone = false;
	}
	run(&scan, job->input + left_out, job->length - left_out);
	if (unlikely(scan.ended && left_out > 0)) {
		backend_begin(job);
		run(&scan, job->input, job->length);
	}
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
