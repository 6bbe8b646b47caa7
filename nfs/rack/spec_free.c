#include <stdlib.h>

#include "rack/spec.h"

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
