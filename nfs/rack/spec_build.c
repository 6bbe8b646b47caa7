#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "rack/spec.h"

#define PLACE "nf_switch_place"

/* Whether a part was accepted; prints why not. */
static bool accepted(struct spec *spec, unsigned int line, const char *name, int result)
{
	if (result == 0)
		return true;
	text_fault(&spec->text, line, "%s: DPDK refuses it: %s", name, strerror(-result));
	return false;
}

static bool build_structs(struct spec *spec, struct rte_swx_pipeline *pipeline)
{
	bool good = true;

	for (unsigned int i = 0; i < spec->n_structs; i++) {
		const struct spec_struct *in = &spec->structs[i];

		good &= accepted(spec, in->line, in->name,
				 rte_swx_pipeline_struct_type_register(
					 pipeline, in->name, in->fields, in->n, in->varbit));
	}
	for (unsigned int i = 0; i < spec->n_headers; i++) {
		const struct spec_header *header = &spec->headers[i];

		good &= accepted(spec, header->line, header->name,
				 rte_swx_pipeline_packet_header_register(pipeline, header->name,
									 header->struct_name));
	}
	return accepted(spec, spec->metadata_line, "metadata",
			rte_swx_pipeline_packet_metadata_register(pipeline, spec->metadata)) &&
	       good;
}

static bool build_arrays(struct spec *spec, struct rte_swx_pipeline *pipeline)
{
	bool good = true;

	for (unsigned int i = 0; i < spec->n_arrays; i++) {
		const struct spec_array *array = &spec->arrays[i];

		good &= accepted(spec, array->line, array->name,
				 array->meters ? rte_swx_pipeline_metarray_config(
							 pipeline, array->name, array->size)
					       : rte_swx_pipeline_regarray_config(
							 pipeline, array->name, array->size,
							 array->initial));
	}
	return good;
}

/* Whether DPDK takes an instruction alone, in an action; a jump needs a place to go to. */
static bool is_accepted_alone(struct rte_swx_pipeline *pipeline, const char *text,
			      const char *struct_name)
{
	static unsigned int tried;
	const char *colon = strstr(text, " : "), *body = colon ? colon + 3 : text;
	char name[RTE_SWX_NAME_SIZE], there[RTE_SWX_INSTRUCTION_SIZE] = "return";
	const char *two[] = {body, there};

	if (strncmp(body, "jmp", 3) == 0 && sscanf(body, "%*s %200s", there) == 1)
		strcat(there, " : return");
	snprintf(name, sizeof(name), "tried %u", tried++);
	return strcmp(body, "return") == 0 ||
	       rte_swx_pipeline_action_config(pipeline, name, struct_name, two, 2) == 0;
}

/* Whether an instruction may only stand in apply, so that it cannot be tried alone. */
static bool is_of_apply(const char *text)
{
	static const char *const words[] = {"rx ",   "extract ", "lookahead ", "table ",
					    "jmph ", "jmpnh ",   "jmpa ",      "jmpna "};
	const char *colon = strstr(text, " : "), *body = colon ? colon + 3 : text;

	for (unsigned int i = 0; i < RTE_DIM(words); i++)
		if (strncmp(body, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* Whether instructions were accepted; prints which are not. */
static bool accepted_all(struct spec *spec, struct rte_swx_pipeline *pipeline,
			 const struct spec_instructions *all, const struct spec_action *action,
			 int result)
{
	bool found = false;

	for (unsigned int i = 0; result == -EINVAL && i < all->n; i++) {
		if ((!action && is_of_apply(all->texts[i])) ||
		    is_accepted_alone(pipeline, all->texts[i], action ? action->struct_name : NULL))
			continue;
		text_fault(&spec->text, all->lines[i], "\"%s\": DPDK refuses it", all->texts[i]);
		found = true;
	}
	return !found && accepted(spec, action ? action->line : spec->apply_line,
				  action ? action->name : "apply", result);
}

static bool build_actions(struct spec *spec, struct rte_swx_pipeline *pipeline)
{
	bool good = true;

	for (unsigned int i = 0; i < spec->n_actions; i++) {
		const struct spec_action *action = &spec->actions[i];
		const struct spec_instructions *all = &action->instructions;

		good &= accepted_all(spec, pipeline, all, action,
				     rte_swx_pipeline_action_config(pipeline, action->name,
								    action->struct_name,
								    all->texts, all->n));
	}
	return good;
}

static bool build_apply(struct spec *spec, struct rte_swx_pipeline *pipeline)
{
	return accepted_all(spec, pipeline, &spec->apply, NULL,
			    rte_swx_pipeline_instructions_config(pipeline, spec->apply.texts,
								 spec->apply.n));
}

static int configure_table(struct rte_swx_pipeline *pipeline, const struct spec_table *table)
{
	const struct spec_choice *actions = &table->actions;
	struct rte_swx_match_field_params *fields = calloc(table->keys.n + 1, sizeof(*fields));
	struct rte_swx_pipeline_table_params params = {
		.fields = table->keys.n > 0 ? fields : NULL,
		.n_fields = table->keys.n,
		.action_names = actions->names,
		.action_is_for_table_entries = actions->in_entries,
		.action_is_for_default_entry = actions->as_default,
		.n_actions = actions->n,
		.default_action_name = actions->by_default,
		.default_action_args = actions->arguments,
		.default_action_is_const = actions->constant,
		.hash_func_name = table->hash,
	};
	int result;

	if (!fields)
		return -ENOMEM;
	for (unsigned int i = 0; i < table->keys.n; i++)
		fields[i] = (struct rte_swx_match_field_params){table->keys.fields[i],
								table->keys.matches[i]};
	result = rte_swx_pipeline_table_config(pipeline, table->name, &params, table->type,
					       table->pragma, table->size);
	free(fields);
	return result;
}

static int configure_selector(struct rte_swx_pipeline *pipeline, const struct spec_table *table)
{
	struct rte_swx_pipeline_selector_params params = {
		.group_id_field_name = table->group_id,
		.selector_field_names = table->keys.fields,
		.n_selector_fields = table->keys.n,
		.member_id_field_name = table->member_id,
		.n_groups_max = table->groups,
		.n_members_per_group_max = table->members,
	};

	return rte_swx_pipeline_selector_config(pipeline, table->name, &params);
}

static int configure_learner(struct rte_swx_pipeline *pipeline, const struct spec_table *table)
{
	const struct spec_choice *actions = &table->actions;
	struct rte_swx_pipeline_learner_params params = {
		.field_names = table->keys.fields,
		.n_fields = table->keys.n,
		.action_names = actions->names,
		.action_is_for_table_entries = actions->in_entries,
		.action_is_for_default_entry = actions->as_default,
		.n_actions = actions->n,
		.default_action_name = actions->by_default,
		.default_action_args = actions->arguments,
		.default_action_is_const = actions->constant,
		.hash_func_name = table->hash,
	};
	uint32_t timeouts[RTE_DIM(table->timeouts)];

	memcpy(timeouts, table->timeouts, sizeof(timeouts));
	return rte_swx_pipeline_learner_config(pipeline, table->name, &params, table->size,
					       timeouts, table->n_timeouts);
}

static bool build_tables(struct spec *spec, struct rte_swx_pipeline *pipeline)
{
	static int (*const configure[])(struct rte_swx_pipeline *, const struct spec_table *) = {
		[SPEC_TABLE] = configure_table,
		[SPEC_SELECTOR] = configure_selector,
		[SPEC_LEARNER] = configure_learner,
	};
	bool good = true;

	for (unsigned int i = 0; i < spec->n_tables; i++) {
		const struct spec_table *table = &spec->tables[i];

		good &= accepted(spec, table->line, table->name,
				 configure[table->kind](pipeline, table));
	}
	return good;
}

/*
 * What DPDK 22.11 does not do as its documents say is written in another way:
 *  - packets that `drop` drops reach no port: they are sent to the last one;
 *  - `regadd ARRAY 3 1` and `regwr ARRAY 3 1`, with two numbers, change the first array of the
 *    program whatever its name: the place goes through a field of the metadata.
 */

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

/* Avoid what DPDK 22.11 does wrong. False after printing that there is no memory. */
static bool rewrite_spec(struct spec *spec, unsigned int drop_port)
{
	struct reader reader = {.spec = spec, .text = &spec->text};

	for (unsigned int i = 0; i < spec->n_actions; i++)
		rewrite_all(&reader, &spec->actions[i].instructions, drop_port);
	rewrite_all(&reader, &spec->apply, drop_port);
	if (reader.failed)
		fprintf(stderr, "%s: no memory\n", spec->text.path);
	return !reader.failed;
}

bool spec_build(struct spec *spec, struct rte_swx_pipeline *pipeline, unsigned int drop_port)
{
	return rewrite_spec(spec, drop_port) && build_structs(spec, pipeline) &&
	       build_arrays(spec, pipeline) && build_actions(spec, pipeline) &&
	       build_tables(spec, pipeline) && build_apply(spec, pipeline) &&
	       accepted(spec, spec->apply_line, "the program", rte_swx_pipeline_build(pipeline));
}
