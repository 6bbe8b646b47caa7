#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "rack/spec.h"

struct clause {
	const char *word;
	enum spec_table_kind kind;
	size_t offset; /* in struct spec_table */
};

/* Report a line that is not what it must be. */
static void spec_expected(struct reader *reader, const struct line *line, const char *wanted)
{
	text_fault(reader->text, line->number, "\"%s\": expected %s", line->whole, wanted);
}

static bool spec_word_is(const struct line *line, unsigned int i, const char *word)
{
	return i < line->n && strcmp(line->words[i], word) == 0;
}

/* Whatever follows is in a block. */
static void spec_enter(struct reader *reader, const struct line *line, enum block block)
{
	reader->block = block;
	reader->block_line = line->number;
}

static void add_instruction(struct reader *reader, struct spec_instructions *all,
			    const struct line *line)
{
	const char **text = spec_grow(reader, &all->texts, all->n, sizeof(*all->texts));
	unsigned int *number = spec_grow(reader, &all->lines, all->n, sizeof(*all->lines));

	if (!text || !number)
		return;
	*text = line->whole;
	*number = line->number;
	all->n++;
}

static void read_struct(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;
	struct spec_struct *made;

	if (line->n != 3 || !spec_word_is(line, 2, "{")) {
		spec_expected(reader, line, "struct NAME {");
		return;
	}
	made = spec_grow(reader, &spec->structs, spec->n_structs, sizeof(*made));
	if (!made)
		return;
	made->name = line->words[1];
	made->line = line->number;
	spec->n_structs++;
	spec_enter(reader, line, IN_STRUCT);
}

static void read_field(struct reader *reader, const struct line *line)
{
	struct spec_struct *in = &reader->spec->structs[reader->spec->n_structs - 1];
	const bool varbit = strncmp(line->words[0], "var", 3) == 0;
	char *type = line->words[0] + (varbit ? 3 : 0);
	struct rte_swx_field_params *field;
	uint64_t bits = 0;
	char *end = strchr(type, '>');

	if (end && end[1] == 0)
		*end = 0; /* of the word; the whole line is a copy */
	if (line->n != 2 || !end || strncmp(type, "bit<", 4) != 0 ||
	    !text_number(type + 4, 1 << 16, &bits) || bits == 0 || bits % 8 != 0) {
		spec_expected(reader, line, "bit<BITS> NAME or varbit<BITS> NAME, in whole bytes");
		return;
	}
	if (in->varbit) {
		text_fault(reader->text, line->number,
			   "%s: follows a varbit field, which must be the last",
			   line->words[1]);
		return;
	}
	field = spec_grow(reader, &in->fields, in->n, sizeof(*field));
	if (!field)
		return;
	field->name = line->words[1];
	field->n_bits = (uint32_t)bits;
	in->varbit = varbit;
	in->n++;
}

static void read_header(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;
	struct spec_header *header;

	if (line->n != 4 || !spec_word_is(line, 2, "instanceof")) {
		spec_expected(reader, line, "header NAME instanceof STRUCT");
		return;
	}
	header = spec_grow(reader, &spec->headers, spec->n_headers, sizeof(*header));
	if (!header)
		return;
	*header = (struct spec_header){line->words[1], line->words[3], line->number};
	spec->n_headers++;
}

static void read_metadata(struct reader *reader, const struct line *line)
{
	if (line->n != 3 || !spec_word_is(line, 1, "instanceof")) {
		spec_expected(reader, line, "metadata instanceof STRUCT");
		return;
	}
	if (reader->spec->metadata)
		text_fault(reader->text, line->number, "metadata: is also in line %u",
			   reader->spec->metadata_line);
	reader->spec->metadata = line->words[2];
	reader->spec->metadata_line = line->number;
}

static void read_action(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;
	const bool none = line->n == 5 && spec_word_is(line, 3, "none");
	struct spec_action *action;

	if (!spec_word_is(line, 2, "args") || !spec_word_is(line, line->n - 1, "{") ||
	    !(none || (line->n == 6 && spec_word_is(line, 3, "instanceof")))) {
		spec_expected(reader, line,
			      "action NAME args none { or action NAME args instanceof STRUCT {");
		return;
	}
	action = spec_grow(reader, &spec->actions, spec->n_actions, sizeof(*action));
	if (!action)
		return;
	action->name = line->words[1];
	action->struct_name = none ? NULL : line->words[4];
	action->line = line->number;
	spec->n_actions++;
	spec_enter(reader, line, IN_ACTION);
}

static void read_table(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;
	struct spec_table *table;

	if (line->n != 3 || !spec_word_is(line, 2, "{")) {
		spec_expected(reader, line, "table NAME {, selector NAME { or learner NAME {");
		return;
	}
	table = spec_grow(reader, &spec->tables, spec->n_tables, sizeof(*table));
	if (!table)
		return;
	table->kind = spec_word_is(line, 0, "table")      ? SPEC_TABLE
		      : spec_word_is(line, 0, "selector") ? SPEC_SELECTOR
						: SPEC_LEARNER;
	table->name = line->words[1];
	table->line = line->number;
	spec->n_tables++;
	spec_enter(reader, line, IN_TABLE);
}

static void read_array(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;
	const bool meters = spec_word_is(line, 0, "metarray");
	struct spec_array *array;
	uint64_t size, initial = 0;

	if (line->n != (meters ? 4 : 6) || !spec_word_is(line, 2, "size") ||
	    !text_number(line->words[3], UINT32_MAX, &size) || size == 0 ||
	    (!meters && (!spec_word_is(line, 4, "initval") ||
			 !text_number(line->words[5], UINT64_MAX, &initial)))) {
		spec_expected(reader, line, meters ? "metarray NAME size N"
					   : "regarray NAME size N initval VALUE");
		return;
	}
	array = spec_grow(reader, &spec->arrays, spec->n_arrays, sizeof(*array));
	if (!array)
		return;
	*array = (struct spec_array){line->words[1], line->number, meters, (uint32_t)size, initial};
	spec->n_arrays++;
}

static void read_apply(struct reader *reader, const struct line *line)
{
	if (line->n != 2 || !spec_word_is(line, 1, "{")) {
		spec_expected(reader, line, "apply {");
		return;
	}
	if (reader->spec->apply_line)
		text_fault(reader->text, line->number, "apply: is also in line %u",
			   reader->spec->apply_line);
	reader->spec->apply_line = line->number;
	spec_enter(reader, line, IN_APPLY);
}

static const struct {
	const char *word;
	void (*read)(struct reader *reader, const struct line *line);
} statements[] = {
	{"struct", read_struct},   {"header", read_header},   {"metadata", read_metadata},
	{"action", read_action},   {"table", read_table},     {"selector", read_table},
	{"learner", read_table},   {"regarray", read_array},  {"metarray", read_array},
	{"apply", read_apply},
};

static void read_statement(struct reader *reader, const struct line *line)
{
	for (unsigned int i = 0; i < RTE_DIM(statements); i++) {
		if (spec_word_is(line, 0, statements[i].word)) {
			statements[i].read(reader, line);
			return;
		}
	}
	text_fault(reader->text, line->number, "\"%s\": is no statement", line->words[0]);
}

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

/* A line in a table, a selector or a learner, or in one of their blocks. */
static void spec_read_in_table(struct reader *reader, const struct line *line)
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

static void read_line(struct reader *reader, const struct line *line)
{
	struct spec *spec = reader->spec;

	if (reader->block >= IN_TABLE && reader->block <= IN_TIMEOUT)
		spec_read_in_table(reader, line);
	else if (reader->block == TOP)
		read_statement(reader, line);
	else if (line->n == 1 && spec_word_is(line, 0, "}"))
		reader->block = TOP;
	else if (reader->block == IN_STRUCT)
		read_field(reader, line);
	else
		add_instruction(reader,
				reader->block == IN_APPLY
					? &spec->apply
					: &spec->actions[spec->n_actions - 1].instructions,
				line);
}

struct spec *spec_read(const char *path)
{
	struct spec *spec = calloc(1, sizeof(*spec));
	struct reader reader = {.spec = spec};
	struct line line;

	if (!spec || !text_open(&spec->text, path)) {
		free(spec);
		return NULL;
	}
	reader.text = &spec->text;
	while (!reader.failed && text_next(&spec->text, &line))
		read_line(&reader, &line);
	if (reader.block != TOP)
		text_fault(&spec->text, reader.block_line, "no } ends this block");
	if (spec->text.faults == 0 && !reader.failed)
		spec_check(spec);
	if (reader.failed)
		fprintf(stderr, "%s: no memory\n", path);
	if (spec->text.faults == 0 && !reader.failed)
		return spec;
	if (spec->text.faults > 0)
		fputs("hint: a program is text as DPDK 22.11 has it in its .spec files\n", stderr);
	spec_free(spec);
	return NULL;
}
