#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack/spec_reader.h"

/* Make room for one more element, which is zero. NULL without memory. */
void *spec_grow(struct reader *reader, void *array, unsigned int n, size_t size)
{
	/* room grows with the powers of two */
	if (n == 0 || (n & (n - 1)) == 0) {
		char *more = realloc(*(void **)array, (n ? 2 * (size_t)n : 1) * size);

		if (!more) {
			reader->failed = true;
			return NULL;
		}
		*(void **)array = more;
	}
	return memset(*(char **)array + n * size, 0, size);
}

void spec_expected(struct reader *reader, const struct line *line, const char *wanted)
{
	text_fault(reader->text, line->number, "\"%s\": expected %s", line->whole, wanted);
}

bool spec_word_is(const struct line *line, unsigned int i, const char *word)
{
	return i < line->n && strcmp(line->words[i], word) == 0;
}

void spec_enter(struct reader *reader, const struct line *line, enum block block)
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
			   "%s: stands behind a varbit field, which must be the last",
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
