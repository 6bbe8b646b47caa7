/*
 * What DPDK 22.11 does not do as its documents say is written in another way:
 *  - packets that `drop` drops reach no port: they are sent to the last one;
 *  - `regadd ARRAY 3 1` and `regwr ARRAY 3 1`, with two numbers, change the first array of the
 *    program whatever its name: the place goes through a field of the metadata.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack/spec_reader.h"

#define PLACE "nf_switch_place"

static bool is_number(const char *word)
{
	return *word >= '0' && *word <= '9';
}

/* The metadata's field for places, added once. False without memory. */
static bool add_place(struct reader *reader)
{
	struct spec *spec = reader->spec;
	struct rte_swx_field_params *field;

	for (unsigned int i = 0; i < spec->n_structs && !spec->has_place; i++) {
		struct spec_struct *metadata = &spec->structs[i];

		if (strcmp(metadata->name, spec->metadata) != 0)
			continue;
		field = spec_grow(reader, &metadata->fields, metadata->n, sizeof(*field));
		if (!field)
			return false;
		*field = (struct rte_swx_field_params){PLACE, 32};
		metadata->n++;
		spec->has_place = true;
	}
	return spec->has_place;
}

/* Append a formatted instruction, which the program keeps. */
__attribute__((format(printf, 4, 5))) static void
append(struct reader *reader, struct spec_instructions *all, unsigned int line, const char *format,
       ...)
{
	struct spec *spec = reader->spec;
	char **kept = spec_grow(reader, &spec->written, spec->n_written, sizeof(*kept));
	const char **text = spec_grow(reader, &all->texts, all->n, sizeof(*text));
	unsigned int *number = spec_grow(reader, &all->lines, all->n, sizeof(*number));
	va_list arguments;

	if (!kept || !text || !number)
		return;
	va_start(arguments, format);
	if (vasprintf(kept, format, arguments) < 0)
		*kept = NULL;
	va_end(arguments);
	spec->n_written++;
	reader->failed |= !*kept;
	*text = *kept;
	*number = line;
	all->n++;
}

/* Whether an instruction is regadd or regwr of two numbers, on an array that is not the first. */
static bool misses_array(const struct spec *spec, const char *body, char name[8],
			 char array[RTE_SWX_NAME_SIZE], char place[24], char value[24])
{
	return sscanf(body, "%7s %63s %23s %23s", name, array, place, value) == 4 &&
	       (strcmp(name, "regadd") == 0 || strcmp(name, "regwr") == 0) && is_number(place) &&
	       is_number(value) && strcmp(spec->arrays[0].name, array) != 0;
}

static void rewrite(struct reader *reader, struct spec_instructions *all, unsigned int line,
		    const char *text, unsigned int drop_port)
{
	const char *colon = strstr(text, " : "), *body = colon ? colon + 3 : text;
	const int label = (int)(body - text); /* its length, with the colon */
	char name[8], array[RTE_SWX_NAME_SIZE], place[24], value[24];

	if (strcmp(body, "drop") == 0) {
		append(reader, all, line, "%.*stx %u", label, text, drop_port);
	} else if (misses_array(reader->spec, body, name, array, place, value) &&
		   add_place(reader)) {
		append(reader, all, line, "%.*smov m." PLACE " %s", label, text, place);
		append(reader, all, line, "%s %s m." PLACE " %s", name, array, value);
	} else {
		append(reader, all, line, "%s", text);
	}
}

static void rewrite_all(struct reader *reader, struct spec_instructions *all,
			unsigned int drop_port)
{
	const struct spec_instructions before = *all;

	*all = (struct spec_instructions){0};
	for (unsigned int i = 0; i < before.n; i++)
		rewrite(reader, all, before.lines[i], before.texts[i], drop_port);
	free(before.texts);
	free(before.lines);
}

bool spec_rewrite(struct spec *spec, unsigned int drop_port)
{
	struct reader reader = {.spec = spec, .text = &spec->text};

	for (unsigned int i = 0; i < spec->n_actions; i++)
		rewrite_all(&reader, &spec->actions[i].instructions, drop_port);
	rewrite_all(&reader, &spec->apply, drop_port);
	if (reader.failed)
		fprintf(stderr, "%s: no memory\n", spec->text.path);
	return !reader.failed;
}
