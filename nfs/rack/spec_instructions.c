#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rack/spec.h"

#define MOST_WORDS 8

/*
 * Operands: h header, k field of a header, m field of the metadata, f either, g either or an
 * argument, s any of them or a number, n field of the metadata or a number, x field of a header to
 * subtract from a checksum, c the same or a header, to add, a action, t table, r register array,
 * q meter array, l label, w word.
 */
static const struct form {
	const char *name, *operands;
	enum { ANYWHERE, APPLY_ONLY, ACTION_ONLY } where;
} forms[] = {
	{"rx", "m", APPLY_ONLY},
	{"tx", "n", ANYWHERE},
	{"drop", "", ANYWHERE},
	{"extract", "h", APPLY_ONLY},
	{"extract", "hm", APPLY_ONLY},
	{"lookahead", "h", APPLY_ONLY},
	{"emit", "h", ANYWHERE},
	{"validate", "h", ANYWHERE},
	{"invalidate", "h", ANYWHERE},
	{"mov", "fs", ANYWHERE},
	{"dma", "hs", ACTION_ONLY},
	{"add", "fs", ANYWHERE},
	{"sub", "fs", ANYWHERE},
	{"and", "fs", ANYWHERE},
	{"or", "fs", ANYWHERE},
	{"xor", "fs", ANYWHERE},
	{"shl", "fs", ANYWHERE},
	{"shr", "fs", ANYWHERE},
	{"ckadd", "kc", ANYWHERE},
	{"cksub", "kx", ANYWHERE},
	{"table", "t", APPLY_ONLY},
	{"learn", "am", ACTION_ONLY},
	{"learn", "amm", ACTION_ONLY},
	{"rearm", "", ACTION_ONLY},
	{"rearm", "m", ACTION_ONLY},
	{"forget", "", ACTION_ONLY},
	{"hash", "wmff", ANYWHERE},
	{"regprefetch", "rs", ANYWHERE},
	{"regrd", "frs", ANYWHERE},
	{"regwr", "rss", ANYWHERE},
	{"regadd", "rss", ANYWHERE},
	{"metprefetch", "qs", ANYWHERE},
	{"meter", "qsssf", ANYWHERE},
	{"jmp", "l", ANYWHERE},
	{"jmpv", "lh", ANYWHERE},
	{"jmpnv", "lh", ANYWHERE},
	{"jmph", "l", APPLY_ONLY},
	{"jmpnh", "l", APPLY_ONLY},
	{"jmpa", "la", APPLY_ONLY},
	{"jmpna", "la", APPLY_ONLY},
	{"jmpeq", "lgs", ANYWHERE},
	{"jmpneq", "lgs", ANYWHERE},
	{"jmplt", "lgs", ANYWHERE},
	{"jmpgt", "lgs", ANYWHERE},
	{"return", "", ACTION_ONLY},
	{"recirculate", "", ANYWHERE},
	{"recircid", "m", ANYWHERE},
};

struct instruction {
	char words[MOST_WORDS][RTE_SWX_INSTRUCTION_SIZE];
	unsigned int n;
	char label[RTE_SWX_INSTRUCTION_SIZE]; /* "" for none */
};

/* False if a word, or the whole, is longer than any instruction. */
static bool split(const char *text, struct instruction *split)
{
	const char *colon = strstr(text, " : ");
	int used;

	split->n = 0;
	split->label[0] = 0;
	if (strlen(text) >= RTE_SWX_INSTRUCTION_SIZE)
		return false;
	if (colon) {
		snprintf(split->label, sizeof(split->label), "%.*s", (int)(colon - text), text);
		text = colon + 3;
	}
	while (split->n < MOST_WORDS &&
	       sscanf(text, "%255s%n", split->words[split->n], &used) == 1) {
		text += used;
		split->n++;
	}
	return *text == 0 && split->n > 0;
}

struct checking {
	struct spec *spec;
	const struct spec_instructions *all;
	const struct spec_action *action;
};

static bool has_label(const struct spec_instructions *all, const char *label, unsigned int *line)
{
	const size_t length = strlen(label);

	for (unsigned int i = 0; i < all->n; i++) {
		if (strncmp(all->texts[i], label, length) == 0 &&
		    strncmp(all->texts[i] + length, " : ", 3) == 0) {
			*line = all->lines[i];
			return true;
		}
	}
	return false;
}

static bool is_number(const char *word)
{
	uint64_t number;

	return text_number(word, UINT64_MAX, &number);
}

/* NULL, or what was expected instead of a word. */
static const char *wrong_name(const struct checking *checking, char kind, const char *word)
{
	const struct spec *spec = checking->spec;
	const struct spec_array *array = spec_find_array(spec, word);
	unsigned int line;

	switch (kind) {
	case 'h':
		return strncmp(word, "h.", 2) == 0 &&
				       spec_find_header(spec, word + 2, strlen(word + 2))
			       ? NULL
			       : "a header";
	case 'a':
		return spec_find_action(spec, word) ? NULL : "an action";
	case 't':
		return spec_find_table(spec, word) ? NULL : "a table";
	case 'r':
		return array && !array->meters ? NULL : "a register array";
	case 'q':
		return array && array->meters ? NULL : "a meter array";
	case 'l':
		return has_label(checking->all, word, &line) ? NULL
							     : "a label of these instructions";
	default:
		return NULL;
	}
}

/*
 * Whether DPDK 22.11 sums up all of a header's field, or of a whole header: it takes odd bytes for
 * a word, and leaves out what is behind the last 32 bits of a header.
 */
static bool is_summable(const struct spec *spec, const char *word)
{
	const char *dot = strchr(word + 2, '.');
	const size_t length = dot ? (size_t)(dot - word - 2) : strlen(word + 2);
	const struct spec_header *header = spec_find_header(spec, word + 2, length);
	const struct spec_struct *in = header ? spec_find_struct(spec, header->struct_name) : NULL;
	const struct rte_swx_field_params *field = dot ? spec_find_field(in, dot + 1) : NULL;
	uint32_t bits = 0;

	if (field)
		return field->n_bits % 16 == 0;
	for (unsigned int i = 0; in && i < in->n; i++)
		bits += in->fields[i].n_bits;
	return bits % 32 == 0;
}

/* NULL, or what was expected instead of a word. */
static const char *wrong_operand(const struct checking *checking, char kind, const char *word)
{
	const enum spec_place place = spec_place_of(checking->spec, checking->action, word, NULL);

	switch (kind) {
	case 'f':
		return place == SPEC_IN_HEADER || place == SPEC_IN_METADATA
			       ? NULL
			       : "a field of a header or of the metadata";
	case 'g':
		return place != SPEC_NOWHERE ? NULL : "a field";
	case 'k':
		return place == SPEC_IN_HEADER ? NULL : "a field of a header";
	case 'm':
		return place == SPEC_IN_METADATA ? NULL : "a field of the metadata";
	case 'n':
		return place == SPEC_IN_METADATA || is_number(word)
			       ? NULL
			       : "a field of the metadata or a number";
	case 's':
		return place != SPEC_NOWHERE || is_number(word) ? NULL : "a field or a number";
	case 'x':
		return place == SPEC_IN_HEADER && is_summable(checking->spec, word)
			       ? NULL
			       : "a field of a header, of 16-bit words";
	case 'c':
		return (place == SPEC_IN_HEADER || !wrong_name(checking, 'h', word)) &&
				       is_summable(checking->spec, word)
			       ? NULL
			       : "a field of a header, of 16-bit words, "
				 "or a header of 32-bit words";
	default:
		return wrong_name(checking, kind, word);
	}
}

static const struct form *form_of(const struct instruction *split, bool *known)
{
	*known = false;
	for (unsigned int i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (strcmp(forms[i].name, split->words[0]) != 0)
			continue;
		*known = true;
		if (strlen(forms[i].operands) == split->n - 1)
			return &forms[i];
	}
	return NULL;
}

static void check_label(const struct checking *checking, unsigned int i, const char *label)
{
	const bool begins = isalpha((unsigned char)*label) || *label == '_';
	unsigned int first = checking->all->lines[i];

	if (strlen(label) >= RTE_SWX_NAME_SIZE || !begins)
		text_fault(&checking->spec->text, checking->all->lines[i],
			   "%s: a label begins with a letter, and has at most %d characters", label,
			   RTE_SWX_NAME_SIZE - 1);
	else if (has_label(checking->all, label, &first) && first != checking->all->lines[i])
		text_fault(&checking->spec->text, checking->all->lines[i],
			   "label %s: is also in line %u", label, first);
}

static void check_one(const struct checking *checking, unsigned int i)
{
	struct text *text = &checking->spec->text;
	const unsigned int line = checking->all->lines[i];
	struct instruction parts;
	const struct form *form;
	bool known = false;

	form = split(checking->all->texts[i], &parts) ? form_of(&parts, &known) : NULL;
	if (parts.label[0])
		check_label(checking, i, parts.label);
	if (!form) {
		text_fault(text, line, "\"%s\": %s", checking->all->texts[i],
			   known ? "has a wrong number of operands" : "is no instruction");
		return;
	}
	if (form->where == (checking->action ? APPLY_ONLY : ACTION_ONLY))
		text_fault(text, line, "%s: may only stand in %s", form->name,
			   checking->action ? "apply" : "an action");
	for (unsigned int k = 0; form->operands[k]; k++) {
		const char *expected =
			wrong_operand(checking, form->operands[k], parts.words[k + 1]);

		if (expected)
			text_fault(text, line, "\"%s\": %s: expected %s", checking->all->texts[i],
				   parts.words[k + 1], expected);
	}
}

static bool ends(const char *text)
{
	const char *colon = strstr(text, " : "), *body = colon ? colon + 3 : text;

	return strcmp(body, "return") == 0 || strcmp(body, "drop") == 0 ||
	       strncmp(body, "tx ", 3) == 0;
}

void spec_check_instructions(struct spec *spec, const struct spec_instructions *all,
			     const struct spec_action *action, unsigned int line)
{
	const struct checking checking = {spec, all, action};

	for (unsigned int i = 0; i < all->n; i++)
		check_one(&checking, i);
	if (all->n == 0 || !ends(all->texts[all->n - 1]))
		text_fault(&spec->text, all->n > 0 ? all->lines[all->n - 1] : line,
			   "%s: does not end with %s", action ? action->name : "apply",
			   action ? "return, tx or drop" : "tx or drop");
	if (!action && (all->n == 0 || strncmp(all->texts[0], "rx ", 3) != 0))
		text_fault(&spec->text, line, "apply: does not begin with rx");
}
