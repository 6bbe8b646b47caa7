#include <string.h>

#include "rack/spec_reader.h"

static struct spec_table *table_of(struct reader *reader)
{
	return &reader->spec->tables[reader->spec->n_tables - 1];
}

static void read_key(struct reader *reader, const struct line *line)
{
	struct spec_table *table = table_of(reader);
	struct spec_keys *keys = &table->keys;
	const bool plain = table->kind != SPEC_TABLE;
	const bool exact = spec_word_is(line, 1, "exact"), lpm = spec_word_is(line, 1, "lpm");
	enum rte_swx_table_match_type *match;
	const char **field;
	unsigned int *number;

	if (plain ? line->n != 1
		  : line->n != 2 || !(exact || lpm || spec_word_is(line, 1, "wildcard"))) {
		spec_expected(reader, line, plain ? "FIELD" : "FIELD exact, wildcard or lpm");
		return;
	}
	field = spec_grow(reader, &keys->fields, keys->n, sizeof(*field));
	match = spec_grow(reader, &keys->matches, keys->n, sizeof(*match));
	number = spec_grow(reader, &keys->lines, keys->n, sizeof(*number));
	if (!field || !match || !number)
		return;
	*field = line->words[0];
	*match = exact ? RTE_SWX_TABLE_MATCH_EXACT
		 : lpm ? RTE_SWX_TABLE_MATCH_LPM
		       : RTE_SWX_TABLE_MATCH_WILDCARD;
	*number = line->number;
	keys->n++;
}

static void read_choice(struct reader *reader, const struct line *line)
{
	struct spec_choice *actions = &table_of(reader)->actions;
	const bool for_entries = spec_word_is(line, 1, "@tableonly");
	const bool for_default = spec_word_is(line, 1, "@defaultonly");
	const char **name;
	int *in_entries, *as_default;
	unsigned int *number;

	if (line->n != (for_entries || for_default ? 2 : 1)) {
		spec_expected(reader, line, "ACTION, ACTION @tableonly or ACTION @defaultonly");
		return;
	}
	name = spec_grow(reader, &actions->names, actions->n, sizeof(*name));
	in_entries = spec_grow(reader, &actions->in_entries, actions->n, sizeof(*in_entries));
	as_default = spec_grow(reader, &actions->as_default, actions->n, sizeof(*as_default));
	number = spec_grow(reader, &actions->lines, actions->n, sizeof(*number));
	if (!name || !in_entries || !as_default || !number)
		return;
	*name = line->words[0];
	*in_entries = !for_default;
	*as_default = !for_entries;
	*number = line->number;
	actions->n++;
}

static void read_timeout(struct reader *reader, const struct line *line)
{
	struct spec_table *table = table_of(reader);
	uint64_t seconds;

	if (line->n != 1 || !text_number(line->words[0], UINT32_MAX, &seconds) || seconds == 0 ||
	    table->n_timeouts == RTE_DIM(table->timeouts))
		spec_expected(reader, line, "SECONDS, at most 16 of them");
	else
		table->timeouts[table->n_timeouts++] = (uint32_t)seconds;
}

/* default_action NAME args none|ARGUMENT VALUE... [const] */
static void read_default(struct reader *reader, const struct line *line)
{
	struct spec_choice *actions = &table_of(reader)->actions;
	const bool constant = spec_word_is(line, line->n - 1, "const");
	const unsigned int end = line->n - constant;
	char *whole = (char *)(uintptr_t)line->whole;
	size_t before = 0;

	if (end < 4 || !spec_word_is(line, 2, "args") ||
	    (spec_word_is(line, 3, "none") ? end != 4 : end % 2 != 1)) {
		spec_expected(reader, line,
			      "default_action NAME args none|ARGUMENT VALUE... [const]");
		return;
	}
	if (actions->by_default)
		text_fault(reader->text, line->number, "default_action: is also in line %u",
			   actions->default_line);
	actions->by_default = line->words[1];
	actions->default_line = line->number;
	actions->constant = constant;
	if (spec_word_is(line, 3, "none"))
		return;
	for (int i = 0; i < 3; i++)
		before += strlen(line->words[i]) + 1;
	if (constant)
		whole[strlen(whole) - strlen(" const")] = 0;
	actions->arguments = whole + before;
}

struct clause {
	const char *word;
	enum spec_table_kind kind;
	size_t offset; /* in struct spec_table */
};

/* Clauses of one word. */
static const struct clause names[] = {
	{"instanceof", SPEC_TABLE, offsetof(struct spec_table, type)},
	{"pragma", SPEC_TABLE, offsetof(struct spec_table, pragma)},
	{"hash", SPEC_TABLE, offsetof(struct spec_table, hash)},
	{"hash", SPEC_LEARNER, offsetof(struct spec_table, hash)},
	{"group_id", SPEC_SELECTOR, offsetof(struct spec_table, group_id)},
	{"member_id", SPEC_SELECTOR, offsetof(struct spec_table, member_id)},
};

/* Clauses of one number. */
static const struct clause numbers[] = {
	{"size", SPEC_TABLE, offsetof(struct spec_table, size)},
	{"size", SPEC_LEARNER, offsetof(struct spec_table, size)},
	{"n_groups_max", SPEC_SELECTOR, offsetof(struct spec_table, groups)},
	{"n_members_per_group_max", SPEC_SELECTOR, offsetof(struct spec_table, members)},
};

static const struct clause *find(const struct clause *clauses, unsigned int n,
				 enum spec_table_kind kind, const char *word)
{
	for (unsigned int i = 0; i < n; i++)
		if (clauses[i].kind == kind && strcmp(clauses[i].word, word) == 0)
			return &clauses[i];
	return NULL;
}

/* A clause of two words; false if it is none of them. */
static bool read_value(struct reader *reader, const struct line *line)
{
	struct spec_table *table = table_of(reader);
	const struct clause *name = find(names, RTE_DIM(names), table->kind, line->words[0]);
	const struct clause *number = find(numbers, RTE_DIM(numbers), table->kind, line->words[0]);
	uint64_t value;

	if (line->n != 2)
		return false;
	if (name) {
		*(const char **)((char *)table + name->offset) = line->words[1];
		return true;
	}
	if (!number || !text_number(line->words[1], UINT32_MAX, &value))
		return false;
	*(uint32_t *)((char *)table + number->offset) = (uint32_t)value;
	return true;
}

static void read_clause(struct reader *reader, const struct line *line)
{
	const enum spec_table_kind kind = table_of(reader)->kind;
	const bool opens = line->n == 2 && spec_word_is(line, 1, "{");

	if (opens && spec_word_is(line, 0, kind == SPEC_SELECTOR ? "selector" : "key"))
		spec_enter(reader, line, IN_KEY);
	else if (opens && kind != SPEC_SELECTOR && spec_word_is(line, 0, "actions"))
		spec_enter(reader, line, IN_ACTIONS);
	else if (opens && kind == SPEC_LEARNER && spec_word_is(line, 0, "timeout"))
		spec_enter(reader, line, IN_TIMEOUT);
	else if (kind != SPEC_SELECTOR && spec_word_is(line, 0, "default_action"))
		read_default(reader, line);
	else if (!read_value(reader, line))
		text_fault(reader->text, line->number, "\"%s\": is no clause of a %s", line->whole,
			   kind == SPEC_TABLE      ? "table"
			   : kind == SPEC_SELECTOR ? "selector"
						   : "learner");
}

void spec_read_in_table(struct reader *reader, const struct line *line)
{
	if (line->n == 1 && spec_word_is(line, 0, "}")) {
		reader->block = reader->block == IN_TABLE ? TOP : IN_TABLE;
		if (reader->block == IN_TABLE)
			reader->block_line = table_of(reader)->line;
		return;
	}
	switch (reader->block) {
	case IN_KEY:
		read_key(reader, line);
		break;
	case IN_ACTIONS:
		read_choice(reader, line);
		break;
	case IN_TIMEOUT:
		read_timeout(reader, line);
		break;
	default:
		read_clause(reader, line);
	}
}
