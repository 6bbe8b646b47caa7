#include <string.h>

#include "rack/spec.h"

static void check_name(struct spec *spec, unsigned int line, const char *name)
{
	if (strlen(name) >= RTE_SWX_NAME_SIZE)
		text_fault(&spec->text, line, "%s: is longer than %d characters", name,
			   RTE_SWX_NAME_SIZE - 1);
}

/* A name of its kind: `first` is what has it, which must be the thing itself. */
static void check_first(struct spec *spec, unsigned int line, const char *name, const void *self,
			const void *first, unsigned int first_line)
{
	check_name(spec, line, name);
	if (first != self)
		text_fault(&spec->text, line, "%s: is also in line %u", name, first_line);
}

static void check_structs(struct spec *spec)
{
	for (unsigned int i = 0; i < spec->n_structs; i++) {
		const struct spec_struct *in = &spec->structs[i];
		const struct spec_struct *first = spec_find_struct(spec, in->name);

		check_first(spec, in->line, in->name, in, first, first->line);
		if (in->n == 0)
			text_fault(&spec->text, in->line, "%s: has no field", in->name);
		for (unsigned int k = 0; k < in->n; k++) {
			check_name(spec, in->line, in->fields[k].name);
			if (spec_find_field(in, in->fields[k].name) != &in->fields[k])
				text_fault(&spec->text, in->line, "%s: has two fields %s",
					   in->name, in->fields[k].name);
		}
	}
}

/* A struct that something is made of; only a header may vary in size. */
static void check_struct_of(struct spec *spec, unsigned int line, const char *name, bool varies)
{
	const struct spec_struct *found = spec_find_struct(spec, name);

	if (!found)
		text_fault(&spec->text, line, "%s: is no struct", name);
	else if (found->varbit && !varies)
		text_fault(&spec->text, line, "%s: only headers may have a varbit field", name);
}

static void check_headers(struct spec *spec)
{
	for (unsigned int i = 0; i < spec->n_headers; i++) {
		const struct spec_header *header = &spec->headers[i];
		const struct spec_header *first =
			spec_find_header(spec, header->name, strlen(header->name));

		check_first(spec, header->line, header->name, header, first, first->line);
		check_struct_of(spec, header->line, header->struct_name, true);
	}
	if (spec->metadata)
		check_struct_of(spec, spec->metadata_line, spec->metadata, false);
	else
		text_fault(&spec->text, spec->text.line, "no metadata instanceof STRUCT");
}

static void check_arrays(struct spec *spec)
{
	for (unsigned int i = 0; i < spec->n_arrays; i++) {
		const struct spec_array *array = &spec->arrays[i];
		const struct spec_array *first = spec_find_array(spec, array->name);

		check_first(spec, array->line, array->name, array, first, first->line);
	}
}

static void check_actions(struct spec *spec)
{
	for (unsigned int i = 0; i < spec->n_actions; i++) {
		const struct spec_action *action = &spec->actions[i];
		const struct spec_action *first = spec_find_action(spec, action->name);

		check_first(spec, action->line, action->name, action, first, first->line);
		if (action->struct_name)
			check_struct_of(spec, action->line, action->struct_name, false);
		spec_check_instructions(spec, &action->instructions, action, action->line);
	}
}

/* All keys are fields of one header, or of the metadata. */
static void check_keys(struct spec *spec, const struct spec_table *table)
{
	const struct spec_keys *keys = &table->keys;

	for (unsigned int i = 0; i < keys->n; i++) {
		const enum spec_place place = spec_place_of(spec, NULL, keys->fields[i], NULL);
		const char *dot = strrchr(keys->fields[i], '.');

		if (place == SPEC_NOWHERE)
			text_fault(&spec->text, keys->lines[i],
				   "%s: is no field of a header or of the metadata",
				   keys->fields[i]);
		else if (strncmp(keys->fields[i], keys->fields[0],
				 (size_t)(dot - keys->fields[i] + 1)) != 0)
			text_fault(&spec->text, keys->lines[i],
				   "%s: is not in the same struct as %s", keys->fields[i],
				   keys->fields[0]);
	}
}

static void check_choice(struct spec *spec, const struct spec_table *table)
{
	const struct spec_choice *actions = &table->actions;
	bool found = false;

	for (unsigned int i = 0; i < actions->n; i++) {
		if (!spec_find_action(spec, actions->names[i]))
			text_fault(&spec->text, actions->lines[i], "%s: is no action",
				   actions->names[i]);
		found |= actions->by_default && actions->as_default[i] &&
			 strcmp(actions->names[i], actions->by_default) == 0;
	}
	if (!actions->by_default)
		text_fault(&spec->text, table->line, "%s: has no default_action", table->name);
	else if (!found)
		text_fault(&spec->text, actions->default_line,
			   "%s: is none of the table's actions that may be the default",
			   actions->by_default);
}

static void check_tables(struct spec *spec)
{
	for (unsigned int i = 0; i < spec->n_tables; i++) {
		const struct spec_table *table = &spec->tables[i];
		const struct spec_table *first = spec_find_table(spec, table->name);

		check_first(spec, table->line, table->name, table, first, first->line);
		check_keys(spec, table);
		if (table->kind == SPEC_SELECTOR)
			continue;
		check_choice(spec, table);
		if (table->kind == SPEC_LEARNER &&
		    (table->keys.n == 0 || table->size == 0 || table->n_timeouts == 0))
			text_fault(&spec->text, table->line, "%s: needs key, size and timeout",
				   table->name);
	}
}

bool spec_has_arrivals(const struct spec *spec)
{
	const struct spec_header *header = spec_find_header(spec, "arrival", strlen("arrival"));
	const struct spec_struct *in = header ? spec_find_struct(spec, header->struct_name) : NULL;

	return in && in->n == 2 && in->fields[0].n_bits == 64 && in->fields[1].n_bits == 32;
}

void spec_check(struct spec *spec)
{
	check_structs(spec);
	check_headers(spec);
	check_arrays(spec);
	check_actions(spec);
	check_tables(spec);
	if (spec->apply_line)
		spec_check_instructions(spec, &spec->apply, NULL, spec->apply_line);
	else
		text_fault(&spec->text, spec->text.line, "no apply { ... }");
}
