#include <string.h>

#include "rack/spec_names.h"

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
