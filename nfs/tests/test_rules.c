#include <hs/hs.h>

#include "core/rules.h"
#include "tests/support.h"

#define MOST 256

static hs_database_t *database;
static hs_scratch_t *scratch;
static const struct rule *all;
static unsigned int n_all;

static int compile(void **state)
{
	const char *expressions[MOST];
	unsigned int flags[MOST], ids[MOST];
	hs_compile_error_t *error;

	(void)state;
	scratch = NULL;
	all = rules(&n_all);
	assert_in_range(n_all, 60, MOST);
	for (unsigned int i = 0; i < n_all; i++) {
		expressions[i] = all[i].expression;
		flags[i] = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH;
		ids[i] = i;
	}
	if (hs_compile_multi(expressions, flags, ids, n_all, HS_MODE_BLOCK, NULL, &database,
			     &error) != HS_SUCCESS)
		fail_msg("%s: %s", all[error->expression].name, error->message);
	assert_int_equal(hs_alloc_scratch(database, &scratch), HS_SUCCESS);
	return 0;
}

static int discard(void **state)
{
	(void)state;
	hs_free_scratch(scratch);
	hs_free_database(database);
	return 0;
}

#define RULES_TEST(test) TEST_WITH(test, void *no_fixture, compile, discard)

static int note(unsigned int id, unsigned long long from, unsigned long long to, unsigned int flags,
		void *matched)
{
	(void)from, (void)to, (void)flags;
	((bool *)matched)[id] = true;
	return 0;
}

/* How many rules match `text`; `matched` marks them. */
static unsigned int scan(const char *text, size_t length, bool matched[MOST])
{
	unsigned int n = 0;

	memset(matched, 0, MOST * sizeof(*matched));
	assert_int_equal(hs_scan(database, text, length, 0, scratch, note, matched), HS_SUCCESS);
	for (unsigned int i = 0; i < n_all; i++)
		n += matched[i];
	return n;
}

/* Each rule matches its witness, and no other rule does. */
RULES_TEST(witnesses_match_one_rule)
{
	bool matched[MOST];

	for (unsigned int i = 0; i < n_all; i++) {
		unsigned int n = scan(all[i].witness, strlen(all[i].witness), matched);

		if (!matched[i])
			fail_msg("%s does not match its witness", all[i].name);
		for (unsigned int other = 0; n > 1 && other < n_all; other++)
			if (matched[other] && other != i)
				fail_msg("%s matches the witness of %s", all[other].name,
					 all[i].name);
	}
}

/* Two adjacent witnesses match their two rules and no third. */
RULES_TEST(adjacent_witnesses_match_two_rules)
{
	bool matched[MOST];
	char text[512];

	for (unsigned int i = 0; i < n_all; i++) {
		for (unsigned int next = 0; next < n_all; next++) {
			int length = snprintf(text, sizeof(text), "%s%s", all[i].witness,
					      all[next].witness);

			assert_in_range(length, 1, sizeof(text) - 1);
			if (scan(text, (size_t)length, matched) != (i == next ? 1 : 2) ||
			    !matched[i] || !matched[next])
				fail_msg("%s beside %s", all[i].name, all[next].name);
		}
	}
}

static void matches_no_other_rule(unsigned int i, const char *text, size_t length)
{
	bool matched[MOST];
	unsigned int n = scan(text, length, matched);

	if (n != matched[i])
		fail_msg("a truncated witness of %s matches another rule", all[i].name);
}

/* A witness without its first or last byte matches no other rule. */
RULES_TEST(truncated_witnesses_match_no_other_rule)
{
	for (unsigned int i = 0; i < n_all; i++) {
		const size_t length = strlen(all[i].witness);

		matches_no_other_rule(i, all[i].witness, length - 1);
		matches_no_other_rule(i, all[i].witness + 1, length - 1);
	}
}

/* Random bytes, random letters and zeros match no rule. */
RULES_TEST(random_bytes_match_no_rule)
{
	const size_t length = 1 << 22;
	char *text = calloc(1, length);
	bool matched[MOST];
	unsigned int seed = 1;

	if (!text)
		abort();
	assert_int_equal(scan(text, length, matched), 0);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(rand_r(&seed) >> 4);
	assert_int_equal(scan(text, length, matched), 0);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + rand_r(&seed) % 26);
	assert_int_equal(scan(text, length, matched), 0);
	free(text);
}

/* Rules are ordered by class, have unique names, and witnesses fit a small packet. */
RULES_TEST(rules_are_in_order)
{
	for (unsigned int i = 0; i < n_all; i++) {
		assert_in_range(all[i].class, i ? all[i - 1].class : 0, RULE_CLASSES - 1);
		assert_in_range(strlen(all[i].witness), 5, 64);
		for (unsigned int other = 0; other < i; other++)
			assert_string_not_equal(all[i].name, all[other].name);
	}
}
