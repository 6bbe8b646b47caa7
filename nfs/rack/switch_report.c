#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack/switch.h"
#include "rack/text.h"

enum name_kind { NAME_FUNCTION, NAME_REASON, NAME_RULES, NAME_KINDS };

static const char *const kinds[] = {"function", "reason", "rules"};
static const char *const arrays[] = {"entered", "reasons", "rules"};

/* A line of the file of names: "function 3 c0/f1", "reason 1 unmatched", or "rules 8 c0/f1 64". */
struct name {
	const char *name;
	uint32_t place, n; /* places in a row */
	enum name_kind kind;
};

struct switch_names {
	struct text text;
	struct rte_swx_pipeline *pipeline;
	struct name *names;
	unsigned int n;
};

static bool has_place(struct rte_swx_pipeline *pipeline, const char *array, uint32_t place)
{
	uint64_t value;

	return rte_swx_ctl_pipeline_regarray_read(pipeline, array, place, &value) == 0;
}

static void read_name(struct switch_names *names, const struct line *line)
{
	enum name_kind kind = NAME_FUNCTION;
	uint64_t place, last, n = 1;
	struct name *more;

	while (kind < NAME_KINDS && strcmp(line->words[0], kinds[kind]) != 0)
		kind++;
	if (kind == NAME_KINDS || line->n != (kind == NAME_RULES ? 4 : 3) ||
	    !text_number(line->words[1], INT32_MAX, &place) ||
	    (kind == NAME_RULES && !text_number(line->words[3], INT32_MAX, &n))) {
		text_fault(&names->text, line->number,
			   "\"%s\": expected function INDEX NAME, reason INDEX NAME, or rules "
			   "INDEX NAME COUNT",
			   line->whole);
		return;
	}
	last = place + (n > 0 ? n - 1 : 0);
	if (!has_place(names->pipeline, arrays[kind], (uint32_t)last) ||
	    (kind == NAME_FUNCTION && !has_place(names->pipeline, "sent", (uint32_t)last))) {
		text_fault(&names->text, line->number, "%s: the program has no place %u in its %s%s",
			   line->words[2], (unsigned int)last,
			   kind == NAME_FUNCTION ? "register arrays entered and sent"
						 : "register array ",
			   kind == NAME_FUNCTION ? "" : arrays[kind]);
		return;
	}
	more = realloc(names->names, (names->n + 1) * sizeof(*more));
	if (!more) {
		text_fault(&names->text, line->number, "no memory");
		return;
	}
	names->names = more;
	more[names->n++] = (struct name){line->words[2], (uint32_t)place, (uint32_t)n, kind};
}

struct switch_names *switch_names_read(const char *path, struct rte_swx_pipeline *pipeline)
{
	struct switch_names *names = calloc(1, sizeof(*names));
	struct line line;

	if (!names || !text_open(&names->text, path)) {
		free(names);
		return NULL;
	}
	names->pipeline = pipeline;
	while (text_next(&names->text, &line))
		read_name(names, &line);
	if (names->text.faults == 0)
		return names;
	switch_names_free(names);
	return NULL;
}

void switch_names_free(struct switch_names *names)
{
	if (!names)
		return;
	text_close(&names->text);
	free(names->names);
	free(names);
}

void switch_names_replace(struct switch_state *state)
{
	const struct switch_names *names = state->next_names;

	for (unsigned int i = 0; names && i < names->n; i++)
		for (uint32_t k = 0; names->names[i].kind == NAME_RULES && k < names->names[i].n; k++)
			rte_swx_ctl_pipeline_regarray_write(state->pipeline, arrays[NAME_RULES],
							    names->names[i].place + k, 0);
	switch_names_free(state->names);
	state->names = state->next_names;
	state->next_names = NULL;
}

static uint64_t value_of(const struct switch_names *names, const char *array, uint32_t place)
{
	uint64_t value = 0;

	rte_swx_ctl_pipeline_regarray_read(names->pipeline, array, place, &value);
	return value;
}

static uint64_t missed(const struct switch_state *state)
{
	return state->world_in ? interface_missed(state->world_in) : 0;
}

static void print_ends(FILE *file, const struct switch_state *state, bool sent)
{
	const struct switch_options *options = state->options;

	/* what the interface lost came in, too */
	fprintf(file, "\"%s\": {\"world\": %" PRIu64, sent ? "sent" : "received",
		sent ? state->counts.sent : state->counts.received + missed(state));
	for (int i = 0; i < options->n_links; i++)
		fprintf(file, ", \"%s\": %" PRIu64, options->links[i].name,
			sent ? links_sent(state->links, i) : links_received(state->links, i));
	fprintf(file, "}, ");
}

static void print_functions(FILE *file, const struct switch_names *names)
{
	const char *before = "";

	fprintf(file, "\"functions\": [");
	for (unsigned int i = 0; names && i < names->n; i++) {
		const struct name *name = &names->names[i];
		uint64_t entered, sent;

		if (name->kind != NAME_FUNCTION)
			continue;
		entered = value_of(names, "entered", name->place);
		sent = value_of(names, "sent", name->place);
		fprintf(file,
			"%s{\"name\": \"%s\", \"entered\": %" PRIu64 ", \"sent\": %" PRIu64
			", \"dropped\": %" PRIu64 "}",
			before, name->name, entered, sent, entered - sent);
		before = ", ";
	}
	fprintf(file, "], ");
}

static void print_reasons(FILE *file, const struct switch_state *state,
			  const struct switch_names *names)
{
	fprintf(file, "\"dropped\": {\"malformed\": %" PRIu64, state->counts.malformed);
	if (state->counts.nowhere > 0)
		fprintf(file, ", \"no_port\": %" PRIu64, state->counts.nowhere);
	if (state->counts.broken > 0)
		fprintf(file, ", \"broken\": %" PRIu64, state->counts.broken);
	if (state->world_in)
		fprintf(file, ", \"missed\": %" PRIu64, missed(state));
	if (state->counts.unsent > 0)
		fprintf(file, ", \"unsent\": %" PRIu64, state->counts.unsent);
	for (unsigned int i = 0; names && i < names->n; i++)
		if (names->names[i].kind == NAME_REASON)
			fprintf(file, ", \"%s\": %" PRIu64, names->names[i].name,
				value_of(names, "reasons", names->names[i].place));
	fprintf(file, "}, ");
}

/* Of each NF, the rules that packets met. */
static void print_rules(FILE *file, const struct switch_names *names)
{
	const char *before = "";

	fprintf(file, "\"rules\": {");
	for (unsigned int i = 0; names && i < names->n; i++) {
		const struct name *name = &names->names[i];
		const char *comma = "";

		if (name->kind != NAME_RULES)
			continue;
		fprintf(file, "%s\"%s\": {", before, name->name);
		for (uint32_t k = 0; k < name->n; k++) {
			const uint64_t met = value_of(names, arrays[NAME_RULES], name->place + k);

			if (met > 0)
				fprintf(file, "%s\"%u\": %" PRIu64, comma, k + 1, met);
			comma = met > 0 ? ", " : comma;
		}
		fputs("}", file);
		before = ", ";
	}
	fprintf(file, "}, ");
}

static bool print(FILE *file, const void *of, bool interrupted)
{
	const struct switch_state *state = of;
	const struct switch_names *names = state->names;

	fprintf(file, "{\"program\": \"nf-switch\", ");
	print_ends(file, state, false);
	print_ends(file, state, true);
	print_functions(file, names);
	print_reasons(file, state, names);
	print_rules(file, names);
	return fprintf(file, "\"drop_port\": %" PRIu64 ", \"interrupted\": %s}\n",
		       state->counts.dropped, interrupted ? "true" : "false") > 0;
}

bool switch_report_write(const struct switch_state *state, bool interrupted)
{
	return control_write_report("nf-switch", state->options->report, print, state, interrupted);
}
