#include "rack/spec.h"

#include <stdlib.h>
#include <string.h>

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

static void free_instructions(struct spec_instructions *instructions)
{
	free(instructions->texts);
	free(instructions->lines);
}

static void free_table(struct spec_table *table)
{
	free(table->keys.fields);
	free(table->keys.matches);
	free(table->keys.lines);
	free(table->actions.names);
	free(table->actions.in_entries);
	free(table->actions.as_default);
	free(table->actions.lines);
}

void spec_free(struct spec *spec)
{
	if (!spec)
		return;
	for (unsigned int i = 0; i < spec->n_structs; i++)
		free(spec->structs[i].fields);
	for (unsigned int i = 0; i < spec->n_actions; i++)
		free_instructions(&spec->actions[i].instructions);
	for (unsigned int i = 0; i < spec->n_tables; i++)
		free_table(&spec->tables[i]);
	free_instructions(&spec->apply);
	for (unsigned int i = 0; i < spec->n_written; i++)
		free(spec->written[i]);
	free(spec->written);
	free(spec->structs);
	free(spec->headers);
	free(spec->actions);
	free(spec->tables);
	free(spec->arrays);
	text_close(&spec->text);
	free(spec);
}

const struct spec_struct *spec_find_struct(const struct spec *spec, const char *name)
{
	for (unsigned int i = 0; name && i < spec->n_structs; i++)
		if (strcmp(spec->structs[i].name, name) == 0)
			return &spec->structs[i];
	return NULL;
}

const struct spec_header *spec_find_header(const struct spec *spec, const char *name, size_t length)
{
	for (unsigned int i = 0; i < spec->n_headers; i++)
		if (strncmp(spec->headers[i].name, name, length) == 0 &&
		    spec->headers[i].name[length] == 0)
			return &spec->headers[i];
	return NULL;
}

const struct spec_action *spec_find_action(const struct spec *spec, const char *name)
{
	for (unsigned int i = 0; i < spec->n_actions; i++)
		if (strcmp(spec->actions[i].name, name) == 0)
			return &spec->actions[i];
	return NULL;
}

const struct spec_table *spec_find_table(const struct spec *spec, const char *name)
{
	for (unsigned int i = 0; i < spec->n_tables; i++)
		if (strcmp(spec->tables[i].name, name) == 0)
			return &spec->tables[i];
	return NULL;
}

const struct spec_array *spec_find_array(const struct spec *spec, const char *name)
{
	for (unsigned int i = 0; i < spec->n_arrays; i++)
		if (strcmp(spec->arrays[i].name, name) == 0)
			return &spec->arrays[i];
	return NULL;
}

const struct rte_swx_field_params *spec_find_field(const struct spec_struct *in, const char *name)
{
	for (unsigned int i = 0; in && i < in->n; i++)
		if (strcmp(in->fields[i].name, name) == 0)
			return &in->fields[i];
	return NULL;
}

enum spec_place spec_place_of(const struct spec *spec, const struct spec_action *action,
			      const char *word, const struct spec_struct **in)
{
	const char *dot = strncmp(word, "h.", 2) == 0 ? strchr(word + 2, '.') : NULL;
	const struct spec_header *header =
		dot ? spec_find_header(spec, word + 2, (size_t)(dot - word - 2)) : NULL;
	const struct spec_struct *found = NULL;
	enum spec_place place = SPEC_NOWHERE;

	if (header) {
		found = spec_find_struct(spec, header->struct_name);
		place = spec_find_field(found, dot + 1) ? SPEC_IN_HEADER : SPEC_NOWHERE;
	} else if (strncmp(word, "m.", 2) == 0) {
		found = spec_find_struct(spec, spec->metadata);
		place = spec_find_field(found, word + 2) ? SPEC_IN_METADATA : SPEC_NOWHERE;
	} else if (action && strncmp(word, "t.", 2) == 0) {
		found = spec_find_struct(spec, action->struct_name);
		place = spec_find_field(found, word + 2) ? SPEC_IN_ARGUMENTS : SPEC_NOWHERE;
	}
	if (in)
		*in = found;
	return place;
}
