#include "rack/entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack/entry_check.h"

/* An entry allocated by DPDK, which leaves its freeing to the caller. */
static void free_entry(struct rte_swx_table_entry *entry)
{
	if (!entry)
		return;
	free(entry->key);
	free(entry->key_mask);
	free(entry->action_data);
	free(entry);
}

/* The number of the table, or learner, of this name in `*i`; false if there is none. */
static bool find_table(struct rte_swx_pipeline *pipeline, const char *name, bool learner,
		       uint32_t *i)
{
	struct rte_swx_ctl_pipeline_info all;
	struct rte_swx_ctl_table_info table;
	struct rte_swx_ctl_learner_info one;

	if (rte_swx_ctl_pipeline_info_get(pipeline, &all) < 0)
		return false;
	for (*i = 0; !learner && *i < all.n_tables; (*i)++)
		if (rte_swx_ctl_table_info_get(pipeline, *i, &table) == 0 &&
		    strcmp(table.name, name) == 0)
			return true;
	for (*i = 0; learner && *i < all.n_learners; (*i)++)
		if (rte_swx_ctl_learner_info_get(pipeline, *i, &one) == 0 &&
		    strcmp(one.name, name) == 0)
			return true;
	return false;
}

enum entry_kind { ENTRY_MATCH, ENTRY_DEFAULT, ENTRY_LEARNER_DEFAULT, ENTRY_WRONG };

static enum entry_kind kind_of(const struct line *line)
{
	static const char *const words[] = {"match", "default", "learner-default"};

	for (unsigned int kind = 0; kind < ENTRY_WRONG; kind++)
		if (line->n > 1 && strcmp(line->words[1], words[kind]) == 0)
			return (enum entry_kind)kind;
	return ENTRY_WRONG;
}

/* What DPDK's reader reads: a default has "action ..." behind it, as an entry without match. */
static struct rte_swx_table_entry *read_entry(struct rte_swx_ctl_pipeline *control,
					      const struct line *line, enum entry_kind kind)
{
	const char *table = line->words[0], *rest = line->whole + strlen(table) + 1;
	int empty;

	if (kind == ENTRY_LEARNER_DEFAULT)
		return rte_swx_ctl_pipeline_learner_default_entry_read(
			control, table, rest + strlen("learner-default "), &empty);
	if (kind == ENTRY_DEFAULT)
		rest += strlen("default ");
	return rte_swx_ctl_pipeline_table_entry_read(control, table, rest, &empty);
}

static int add(struct rte_swx_ctl_pipeline *control, const char *table,
	       struct rte_swx_table_entry *entry, enum entry_kind kind)
{
	switch (kind) {
	case ENTRY_MATCH:
		return rte_swx_ctl_pipeline_table_entry_add(control, table, entry);
	case ENTRY_DEFAULT:
		return rte_swx_ctl_pipeline_table_default_entry_add(control, table, entry);
	default:
		return rte_swx_ctl_pipeline_learner_default_entry_add(control, table, entry);
	}
}

static void load(struct entry_check *check, const struct line *line,
		 struct rte_swx_ctl_pipeline *control)
{
	const enum entry_kind kind = kind_of(line);
	const char *table = line->words[0];
	struct text *text = check->text;
	struct rte_swx_table_entry *entry;
	const unsigned int faults = text->faults;
	uint32_t number;

	if (kind == ENTRY_WRONG || line->n < 4) {
		text_fault(text, line->number,
			   "\"%s\": expected TABLE match|default|learner-default ... action ...",
			   line->whole);
		return;
	}
	if (!find_table(check->pipeline, table, kind == ENTRY_LEARNER_DEFAULT, &number)) {
		text_fault(text, line->number, "%s: is no %s of the program", table,
			   kind == ENTRY_LEARNER_DEFAULT ? "learner" : "table");
		return;
	}
	entry_check(check, line, number);
	if (text->faults > faults)
		return;
	entry = read_entry(control, line, kind);
	if (!entry)
		text_fault(text, line->number, "\"%s\": is no entry of table %s",
			   line->whole + strlen(table) + 1, table);
	else if (add(control, table, entry, kind) != 0)
		text_fault(text, line->number, "\"%s\": table %s refuses it",
			   line->whole + strlen(table) + 1, table);
	free_entry(entry);
}

bool entries_load(const char *path, struct rte_swx_pipeline *pipeline,
		  struct rte_swx_ctl_pipeline *control)
{
	struct text text;
	struct entry_check check = {.text = &text, .pipeline = pipeline};
	struct line line;
	bool good;

	if (!text_open(&text, path))
		return false;
	while (text_next(&text, &line))
		load(&check, &line, control);
	good = text.faults == 0;
	if (!good)
		fputs("hint: TABLE match VALUE[/MASK]... [priority N] action NAME "
		      "[ARGUMENT VALUE]...\n",
		      stderr);
	if (good && rte_swx_ctl_pipeline_commit(control, 1) != 0) {
		fprintf(stderr, "%s: the tables do not hold all entries\n", path);
		good = false;
	}
	entry_check_free(&check);
	text_close(&text);
	return good;
}
