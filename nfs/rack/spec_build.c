#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

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

bool spec_build(struct spec *spec, struct rte_swx_pipeline *pipeline, unsigned int drop_port)
{
	return spec_rewrite(spec, drop_port) && build_structs(spec, pipeline) &&
	       build_arrays(spec, pipeline) && build_actions(spec, pipeline) &&
	       build_tables(spec, pipeline) && build_apply(spec, pipeline) &&
	       accepted(spec, spec->apply_line, "the program", rte_swx_pipeline_build(pipeline));
}
