#include "rack/entries.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack/text.h"

/* Checks of entries that DPDK 22.11 does not make: it truncates numbers, and replaces twins. */

struct entry_check {
	struct text *text;
	struct rte_swx_pipeline *pipeline;
	void *seen; /* tree of what entries of all tables match */
};

/* What an entry matches, in one notation. */
struct seen {
	unsigned int line;
	char text[];
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->text, ((const struct seen *)b)->text);
}

static void entry_check_free(struct entry_check *check)
{
	while (check->seen) {
		struct seen *seen = *(struct seen **)check->seen;

		tdelete(seen, &check->seen, compare);
		free(seen);
	}
}

static uint64_t most_of(uint32_t bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* One "VALUE" or "VALUE/MASK"; false after reporting what is wrong. */
static bool check_value(struct entry_check *check, unsigned int line, const char *word,
			const struct rte_swx_ctl_table_match_field_info *field, uint64_t *value,
			uint64_t *mask)
{
	const uint64_t most = most_of(field->n_bits);
	const char *slash = strchr(word, '/');
	char text[32] = "";

	*mask = most;
	snprintf(text, sizeof(text), "%.*s", slash ? (int)(slash - word) : 31, word);
	if (!text_number(text, most, value) || (slash && !text_number(slash + 1, most, mask)))
		text_fault(check->text, line, "%s: expected a number of %u bits, or two with a /",
			   word, field->n_bits);
	else if (slash && field->match_type == RTE_SWX_TABLE_MATCH_EXACT && *mask != most)
		text_fault(check->text, line, "%s: this field is matched as a whole", word);
	else if (*value & ~*mask)
		text_fault(check->text, line, "%s: the value has bits that the mask has not", word);
	else
		return true;
	return false;
}

/* Report an entry whose match an earlier one has, too. */
static void check_twin(struct entry_check *check, unsigned int line, const char *match)
{
	struct seen *seen = malloc(sizeof(*seen) + strlen(match) + 1);
	struct seen **first;

	if (!seen) {
		text_fault(check->text, line, "no memory");
		return;
	}
	seen->line = line;
	strcpy(seen->text, match);
	first = tsearch(seen, &check->seen, compare);
	if (first && *first == seen)
		return;
	if (first)
		text_fault(check->text, line, "matches the same as line %u", (*first)->line);
	free(seen);
}

/* Check the fields, and the priority; the word behind them. */
static unsigned int check_match(struct entry_check *check, const struct line *line, uint32_t table,
				uint32_t n_fields)
{
	struct rte_swx_ctl_table_match_field_info field;
	uint64_t value, mask, priority = 0;
	unsigned int at = 2;
	bool good = true;
	char *match = NULL;
	size_t size;
	FILE *file = open_memstream(&match, &size);

	for (uint32_t i = 0; file && i < n_fields && at < line->n; i++, at++) {
		if (rte_swx_ctl_table_match_field_info_get(check->pipeline, table, i, &field) < 0 ||
		    field.n_bits > 64)
			good = false; /* DPDK reads wide fields as bytes */
		else if (!check_value(check, line->number, line->words[at], &field, &value, &mask))
			good = false;
		else
			fprintf(file, " %" PRIx64 "/%" PRIx64, value, mask);
	}
	if (at + 1 < line->n && strcmp(line->words[at], "priority") == 0) {
		good &= text_number(line->words[at + 1], UINT32_MAX, &priority);
		at += 2;
	}
	if (file)
		fprintf(file, " %" PRIu64 " %" PRIu32, priority, table);
	if (file && fclose(file) == 0 && good)
		check_twin(check, line->number, match);
	free(match);
	return at;
}

static bool find_action(struct entry_check *check, const char *name, uint32_t *id,
			struct rte_swx_ctl_action_info *action)
{
	struct rte_swx_ctl_pipeline_info all;

	if (rte_swx_ctl_pipeline_info_get(check->pipeline, &all) < 0)
		return false;
	for (*id = 0; *id < all.n_actions; (*id)++)
		if (rte_swx_ctl_action_info_get(check->pipeline, *id, action) == 0 &&
		    strcmp(action->name, name) == 0)
			return true;
	return false;
}

/* Check the values of "action NAME ARGUMENT VALUE..."; DPDK looks at the names. */
static void check_arguments(struct entry_check *check, const struct line *line, unsigned int at)
{
	struct rte_swx_ctl_action_arg_info argument;
	struct rte_swx_ctl_action_info action;
	uint64_t value;
	uint32_t id;

	if (at + 1 >= line->n || strcmp(line->words[at], "action") != 0 ||
	    !find_action(check, line->words[at + 1], &id, &action))
		return;
	for (uint32_t i = 0; i < action.n_args && at + 3 + 2 * i < line->n; i++) {
		const char *word = line->words[at + 3 + 2 * i];

		if (rte_swx_ctl_action_arg_info_get(check->pipeline, id, i, &argument) == 0 &&
		    argument.n_bits <= 64 && !text_number(word, most_of(argument.n_bits), &value))
			text_fault(check->text, line->number, "%s %s: expected a number of %u bits",
				   argument.name, word, argument.n_bits);
	}
}

/*
 * Report values wider than their field, masks where none may be or that leave bits of the value
 * out, and entries that match the same as an earlier one. `table` is the number of the table; for
 * a default entry only the arguments are looked at.
 */
static void entry_check(struct entry_check *check, const struct line *line, uint32_t table)
{
	struct rte_swx_ctl_table_info info;
	unsigned int at = 2;

	if (strcmp(line->words[1], "match") == 0 &&
	    rte_swx_ctl_table_info_get(check->pipeline, table, &info) == 0)
		at = check_match(check, line, table, info.n_match_fields);
	check_arguments(check, line, at);
}

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

/* Lines of a file, as a tree of texts. */

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool has_line(void *const *lines, const char *line)
{
	return lines && tfind(line, lines, compare_lines) != NULL;
}

static void free_lines(void **lines)
{
	while (*lines) {
		char *line = *(char **)*lines;

		tdelete(line, lines, compare_lines);
		free(line);
	}
}

static bool keep_lines(const char *path, void **lines)
{
	struct text text;
	struct line line;

	*lines = NULL;
	if (!text_open(&text, path))
		return false;
	while (text_next(&text, &line)) {
		char *copy = has_line(lines, line.whole) ? NULL : strdup(line.whole);

		if (copy && !tsearch(copy, lines, compare_lines))
			free(copy);
	}
	text_close(&text);
	return true;
}

/* Check a line and add its entry, unless it is among those that are there. */
static void load(struct entry_check *check, const struct line *line, void *const *present,
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
	if (text->faults > faults || has_line(present, line->whole))
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

/* Stage the entries of a file but those that are there; false after printing every fault. */
static bool stage(const char *path, void *const *present, struct rte_swx_pipeline *pipeline,
		  struct rte_swx_ctl_pipeline *control)
{
	struct text text;
	struct entry_check check = {.text = &text, .pipeline = pipeline};
	struct line line;
	bool good;

	if (!text_open(&text, path))
		return false;
	while (text_next(&text, &line))
		load(&check, &line, present, control);
	good = text.faults == 0;
	if (!good)
		fputs("hint: TABLE match VALUE[/MASK]... [priority N] action NAME "
		      "[ARGUMENT VALUE]...\n",
		      stderr);
	entry_check_free(&check);
	text_close(&text);
	return good;
}

bool entries_load(const char *path, struct rte_swx_pipeline *pipeline,
		  struct rte_swx_ctl_pipeline *control)
{
	return stage(path, NULL, pipeline, control) && entries_commit(path, control);
}

bool entries_commit(const char *path, struct rte_swx_ctl_pipeline *control)
{
	if (rte_swx_ctl_pipeline_commit(control, 1) == 0)
		return true;
	fprintf(stderr, "%s: the tables do not hold all entries\n", path);
	return false;
}

/* Stage that the entries of a file go, but those that stay; defaults are replaced by others. */
static bool unstage(const char *path, void *const *staying, struct rte_swx_ctl_pipeline *control)
{
	struct text text;
	struct line line;
	bool good = true;

	if (!text_open(&text, path))
		return false;
	while (text_next(&text, &line)) {
		struct rte_swx_table_entry *entry;

		if (has_line(staying, line.whole) || kind_of(&line) != ENTRY_MATCH)
			continue;
		entry = read_entry(control, &line, ENTRY_MATCH);
		good &= entry && rte_swx_ctl_pipeline_table_entry_delete(control, line.words[0],
									 entry) == 0;
		free_entry(entry);
	}
	text_close(&text);
	return good;
}

bool entries_prepare(const char *old_path, const char *path, struct rte_swx_pipeline *pipeline,
		     struct rte_swx_ctl_pipeline *control)
{
	void *present = NULL, *staying = NULL;
	bool good;

	rte_swx_ctl_pipeline_abort(control);
	/* what goes is staged first: an entry may be given again with another action */
	good = keep_lines(old_path, &present) && keep_lines(path, &staying) &&
	       unstage(old_path, &staying, control) && stage(path, &present, pipeline, control);
	free_lines(&present);
	free_lines(&staying);
	if (!good)
		rte_swx_ctl_pipeline_abort(control);
	return good;
}
