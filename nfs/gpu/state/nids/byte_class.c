#include "gpu/state/nids/byte_class.h"

#include <ctype.h>
#include <string.h>

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

const char *byte_class_read(struct reader *reader, struct byte_set *set)
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
