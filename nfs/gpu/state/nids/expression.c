#include "gpu/state/nids/expression.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/state/nids/byte_class.h"

#define MOST_DEPTH 16
#define MOST_REPEATS 100000 /* more items than a sequence may have */

/* How often something is repeated; `most` is negative without a limit. */
struct repeats {
	int least, most;
};

static const char *read_alternatives(struct reader *reader, struct sequences *made, int depth);

/* A number, at most MOST_REPEATS; negative if there is none. */
static int read_number(const char **at)
{
	int number = 0;

	if (!isdigit((unsigned char)**at))
		return -1;
	for (; isdigit((unsigned char)**at); (*at)++)
		if (number < MOST_REPEATS)
			number = number * 10 + **at - '0';
	return number < MOST_REPEATS ? number : MOST_REPEATS;
}

/* {n}, {n,} or {n,m}; false if the brace is a plain character. */
static bool read_braces(const char **at, struct repeats *repeats)
{
	const char *end = *at + 1;

	repeats->least = repeats->most = read_number(&end);
	if (repeats->least < 0)
		return false;
	if (*end == ',') {
		end++;
		repeats->most = *end == '}' ? -1 : read_number(&end);
		if (*end != '}' || (repeats->most < 0 && end[-1] != ','))
			return false;
	}
	if (*end != '}')
		return false;
	*at = end + 1;
	return true;
}

/* What follows an atom; {1, 1} if nothing does. */
static const char *read_repeats(struct reader *reader, struct repeats *repeats)
{
	const char first = *reader->at, *next;
	struct repeats more;

	*repeats = (struct repeats){1, 1};
	if (first == '?' || first == '*' || first == '+') {
		repeats->least = first == '+';
		repeats->most = first == '?' ? 1 : -1;
		reader->at++;
	} else if (first != '{' || !read_braces(&reader->at, repeats)) {
		return NULL;
	}
	if (repeats->most >= 0 && repeats->most < repeats->least)
		return "a repetition of at most less than at least";
	if (*reader->at == '?') /* as few as possible: the same matches */
		reader->at++;
	next = reader->at;
	if (*next == '+' || *next == '*' || *next == '?' ||
	    (*next == '{' && read_braces(&next, &more)))
		return "the automaton has no repetition of a repetition, and no possessive one";
	return NULL;
}

/* Append a group `repeats` times. */
static const char *append_group(struct sequences *to, const struct sequences *group,
				struct repeats repeats)
{
	struct sequences longer;
	const char *why = NULL;

	if (repeats.most < 0)
		return "the automaton has no group without a limit of repetition";
	for (int i = 0; i < repeats.least && !why; i++)
		why = sequences_multiply(to, group);
	if (why || repeats.most == repeats.least)
		return why;
	/* one more, or not; and so on */
	why = sequences_copy(&longer, to);
	for (int i = repeats.least; i < repeats.most && !why; i++) {
		why = sequences_multiply(&longer, group);
		if (!why)
			why = sequences_unite(to, &longer);
	}
	sequences_free(&longer);
	return why;
}

static const char *read_group(struct reader *reader, struct sequences *to, int depth)
{
	struct sequences group = {0};
	struct repeats repeats;
	const char *why;

	if (depth == MOST_DEPTH)
		return "groups in groups too deep";
	reader->at++;
	if (*reader->at == '*' || (*reader->at == '?' && reader->at[1] != ':'))
		return "the automaton has no assertions, conditions and names";
	if (*reader->at == '?')
		reader->at += 2;
	why = read_alternatives(reader, &group, depth + 1);
	if (!why && *reader->at++ != ')')
		why = "a group without an end";
	if (!why)
		why = read_repeats(reader, &repeats);
	if (!why)
		why = append_group(to, &group, repeats);
	sequences_free(&group);
	return why;
}

static const char *read_atom(struct reader *reader, struct sequences *to, int depth)
{
	struct item item = {.optional = false};
	struct repeats repeats;
	const char *why;

	if (*reader->at == '(')
		return read_group(reader, to, depth);
	why = byte_class_read(reader, &item.set);
	if (!why)
		why = read_repeats(reader, &repeats);
	return why ? why : sequences_append(to, &item, repeats.least, repeats.most);
}

static const char *read_branch(struct reader *reader, struct sequences *made, int depth)
{
	const char *why = sequences_of_nothing(made);

	while (!why && *reader->at && *reader->at != '|' && *reader->at != ')')
		why = read_atom(reader, made, depth);
	return why;
}

static const char *read_alternatives(struct reader *reader, struct sequences *made, int depth)
{
	const char *why = read_branch(reader, made, depth);

	while (!why && *reader->at == '|') {
		struct sequences other;

		reader->at++;
		why = read_branch(reader, &other, depth);
		if (!why)
			why = sequences_unite(made, &other);
		sequences_free(&other);
	}
	return why;
}

const char *expression_read(const char *expression, struct sequences *made)
{
	struct reader reader = {.at = expression};
	const char *why;

	if (strncmp(expression, "(?i)", 4) == 0) {
		reader.ignores_case = true;
		reader.at += 4;
	}
	why = read_alternatives(&reader, made, 0);
	if (!why && *reader.at)
		why = "a parenthesis too many";
	if (!why)
		why = sequences_trim(made);
	if (why)
		sequences_free(made);
	return why;
}
