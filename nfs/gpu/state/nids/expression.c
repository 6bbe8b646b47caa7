#include "gpu/state/nids/expression.h"

#include <ctype.h>
#include <string.h>

/* Reads what stands for one byte in an expression: a character, an escape, a dot, a class. */

struct reader {
	const char *at;
	bool ignores_case;
};

static int digit_of(char digit)
{
	return isdigit((unsigned char)digit) ? digit - '0'
					     : tolower((unsigned char)digit) - 'a' + 10;
}

/* \xHH, with at most two digits. */
static unsigned int read_hexadecimal(struct reader *reader)
{
	unsigned int byte = 0;

	for (int i = 0; i < 2 && isxdigit((unsigned char)*reader->at); i++)
		byte = byte * 16 + (unsigned int)digit_of(*reader->at++);
	return byte;
}

static void add_range(struct byte_set *set, unsigned int low, unsigned int high)
{
	for (unsigned int byte = low; byte <= high; byte++)
		byte_set_add(set, byte);
}

static void add_text(struct byte_set *set, const char *text)
{
	for (; *text; text++)
		byte_set_add(set, (unsigned char)*text);
}

static void invert(struct byte_set *set)
{
	for (int i = 0; i < 4; i++)
		set->bits[i] = ~set->bits[i];
}

/* \d, \w, \s and their opposites; false if the escape is none of them. */
static bool add_named(struct byte_set *set, char name)
{
	struct byte_set named = {{0}};

	switch (tolower((unsigned char)name)) {
	case 'd':
		add_range(&named, '0', '9');
		break;
	case 'w':
		add_range(&named, '0', '9');
		add_range(&named, 'A', 'Z');
		add_range(&named, 'a', 'z');
		add_text(&named, "_");
		break;
	case 's':
		add_text(&named, " \t\n\v\f\r");
		break;
	default:
		return false;
	}
	if (isupper((unsigned char)name))
		invert(&named);
	for (int i = 0; i < 4; i++)
		set->bits[i] |= named.bits[i];
	return true;
}

/* The byte of an escape, behind its backslash, or a negative number if it is a class. */
static const char *read_escape(struct reader *reader, struct byte_set *set, int *byte)
{
	static const char names[] = "nrtfae", bytes[] = "\n\r\t\f\a\x1b";
	const char escape = *reader->at++;
	const char *name = escape ? strchr(names, escape) : NULL;

	*byte = -1;
	if (!escape)
		return "a backslash at the end";
	if (add_named(set, escape))
		return NULL;
	if (escape == 'x' && *reader->at != '{')
		*byte = (int)read_hexadecimal(reader);
	else if (name)
		*byte = bytes[name - names];
	else if (!isalnum((unsigned char)escape))
		*byte = (unsigned char)escape;
	else
		return "the automaton does not have this escape";
	return NULL;
}

/* A byte of a class, or of a range in it. */
static const char *read_member(struct reader *reader, struct byte_set *set, int *byte)
{
	if (*reader->at == '[' && reader->at[1] && strchr(":.=", reader->at[1]))
		return "the automaton does not have named classes";
	if (*reader->at != '\\') {
		*byte = (unsigned char)*reader->at++;
		return NULL;
	}
	reader->at++;
	if (*reader->at == 'b') { /* only in a class */
		reader->at++;
		*byte = '\b';
		return NULL;
	}
	return read_escape(reader, set, byte);
}

static const char *read_members(struct reader *reader, struct byte_set *set)
{
	int low, high;
	const char *why = read_member(reader, set, &low);

	if (why || low < 0)
		return why;
	if (*reader->at != '-' || reader->at[1] == ']' || !reader->at[1]) {
		byte_set_add(set, (unsigned int)low);
		return NULL;
	}
	reader->at++;
	why = read_member(reader, set, &high);
	if (why)
		return why;
	if (high < low)
		return "a range out of order";
	add_range(set, (unsigned int)low, (unsigned int)high);
	return NULL;
}

static void add_other_case(struct byte_set *set)
{
	for (unsigned int byte = 'A'; byte <= 'Z'; byte++)
		if (byte_set_has(set, byte) || byte_set_has(set, byte + 32)) {
			byte_set_add(set, byte);
			byte_set_add(set, byte + 32);
		}
}

static const char *read_class(struct reader *reader, struct byte_set *set)
{
	const bool inverted = reader->at[1] == '^';
	const char *why = NULL, *first;

	reader->at += 1 + inverted;
	first = reader->at;
	while (!why && *reader->at && (*reader->at != ']' || reader->at == first))
		why = read_members(reader, set);
	if (!why && *reader->at++ != ']')
		why = "a class without an end";
	if (reader->ignores_case)
		add_other_case(set);
	if (inverted)
		invert(set);
	return why;
}

/* NULL, or why not. */
static const char *byte_class_read(struct reader *reader, struct byte_set *set)
{
	const char first = *reader->at;
	const char *why = NULL;
	int byte = -1;

	if (strchr("^$", first))
		return "the automaton has no anchors";
	if (strchr("*+?", first))
		return "nothing to repeat";
	if (first == '[')
		return read_class(reader, set);
	reader->at++;
	if (first == '.')
		add_range(set, 0, 255);
	else if (first == '\\')
		why = read_escape(reader, set, &byte);
	else
		byte = (unsigned char)first;
	if (byte >= 0)
		byte_set_add(set, (unsigned int)byte);
	if (reader->ignores_case)
		add_other_case(set);
	return why;
}

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
