#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/chain.h"

struct faults {
	const struct chain_spec *spec;
	unsigned int n;
};

__attribute__((format(printf, 3, 4))) static void fault(struct faults *faults, unsigned int line,
							const char *format, ...)
{
	const char *source = faults->spec->source ? faults->spec->source : "chain";
	va_list arguments;

	faults->n++;
	fprintf(stderr, line ? "%s:%u: " : "%s: ", source, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static bool has_predecessor(const struct chain_spec *spec, unsigned int function)
{
	for (unsigned int i = 0; i < spec->n_edges; i++)
		if (spec->edges[i].to == (int)function && spec->edges[i].from >= 0)
			return true;
	return false;
}

static bool is_entered_by_service(const struct chain_spec *spec, unsigned int function)
{
	for (unsigned int i = 0; i < spec->n_edges; i++)
		if (spec->edges[i].to == (int)function && spec->edges[i].from < 0)
			return true;
	return false;
}

/* Exactly one function has no predecessor and no service: packets enter there. */
static void check_entries(struct faults *faults)
{
	const struct chain_spec *spec = faults->spec;
	const struct chain_function *first = NULL;
	bool services = false;

	for (unsigned int i = 0; i < spec->n_functions; i++) {
		const struct chain_function *function = &spec->functions[i];

		services |= is_entered_by_service(spec, i);
		if (has_predecessor(spec, i) || is_entered_by_service(spec, i))
			continue;
		if (first)
			fault(faults, function->line,
			      "%s: a chain has one entry, and %s is one, too: no edge leads to "
			      "either",
			      function->name, first->name);
		else
			first = function;
	}
	if (!first && !services)
		fault(faults, 0, "no entry: an edge leads to each function");
}

enum { UNSEEN, OPEN, DONE };

/* Depth first; a function that is still open closes a cycle. */
static void look_for_cycles(struct faults *faults, unsigned int function, uint8_t *seen)
{
	const struct chain_spec *spec = faults->spec;

	seen[function] = OPEN;
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from != (int)function || edge->to < 0)
			continue;
		if (seen[edge->to] == OPEN)
			fault(faults, edge->line, "%s -> %s closes a cycle",
			      spec->functions[function].name, spec->functions[edge->to].name);
		else if (seen[edge->to] == UNSEEN)
			look_for_cycles(faults, (unsigned int)edge->to, seen);
	}
	seen[function] = DONE;
}

static void check_cycles(struct faults *faults)
{
	uint8_t seen[CHAIN_MOST_FUNCTIONS] = {UNSEEN};

	for (unsigned int i = 0; i < faults->spec->n_functions; i++)
		if (seen[i] == UNSEEN)
			look_for_cycles(faults, i, seen);
}

/* Whether two edges share flows: those of one gate, or those by which one service enters. */
static bool share_flows(const struct chain_edge *one, const struct chain_edge *other)
{
	if (one->from < 0 || other->from < 0)
		return one->from < 0 && other->from < 0 &&
		       one->service.path == other->service.path &&
		       one->service.index == other->service.index;
	return one->from == other->from && one->gate == other->gate;
}

/* "acl", or "nsh 5 254" */
static void name_of(const struct chain_spec *spec, const struct chain_edge *edge, char *name,
		    size_t size)
{
	if (edge->from >= 0)
		snprintf(name, size, "%s", spec->functions[edge->from].name);
	else
		snprintf(name, size, "nsh %u %u", edge->service.path, edge->service.index);
}

/* An edge must not be there twice, and have a share. */
static void check_share(struct faults *faults, unsigned int first, unsigned int at)
{
	const struct chain_spec *spec = faults->spec;
	const struct chain_edge *edge = &spec->edges[at];

	for (unsigned int i = first; i < at; i++)
		if (share_flows(edge, &spec->edges[i]) && spec->edges[i].to == edge->to &&
		    edge->to >= 0)
			fault(faults, edge->line, "this edge is there already");
	if (!(edge->share.part > 0 && edge->share.part <= edge->share.of &&
	      edge->share.of <= SHARE_MOST))
		fault(faults, edge->line, "a share is above 0 and at most 1");
}

/* The shares of edges that share flows, where `first` is the first of them. */
static void check_shares(struct faults *faults, unsigned int first)
{
	const struct chain_spec *spec = faults->spec;
	const struct chain_edge *edge = &spec->edges[first];
	char name[CHAIN_MOST_NAME + 16];
	unsigned int ways = 0;
	double sum = 0;

	for (unsigned int i = 0; i < first; i++)
		if (share_flows(edge, &spec->edges[i]))
			return;
	for (unsigned int i = first; i < spec->n_edges; i++) {
		if (!share_flows(edge, &spec->edges[i]))
			continue;
		check_share(faults, first, i);
		sum += share_value(spec->edges[i].share);
		ways++;
	}
	name_of(spec, edge, name, sizeof(name));
	if (ways > CHAIN_MOST_WAYS)
		fault(faults, edge->line, "%s has %u edges by one %s, more than %d", name, ways,
		      edge->from < 0 ? "service" : "gate", CHAIN_MOST_WAYS);
	if (fabs(sum - 1) > 1e-6)
		fault(faults, edge->line, "the shares of %s add up to %g, not to 1", name, sum);
}

static bool has_usual_entry(const struct chain_spec *spec)
{
	for (unsigned int i = 0; i < spec->n_functions; i++)
		if (!has_predecessor(spec, i) && !is_entered_by_service(spec, i))
			return true;
	return false;
}

static void check_cores(struct faults *faults)
{
	const struct chain_spec *spec = faults->spec;

	for (unsigned int core = 0; core < spec->n_cores; core++) {
		unsigned int functions = 0;

		for (unsigned int i = 0; i < spec->n_functions; i++)
			functions += spec->functions[i].core == core;
		if (functions == 0 && (core > 0 || has_usual_entry(spec)))
			fault(faults, 0, "core %u runs no function", core);
	}
}

unsigned int chain_spec_check(const struct chain_spec *spec)
{
	struct faults faults = {.spec = spec};

	if (spec->n_functions == 0) {
		fault(&faults, 0, "no function");
		return faults.n;
	}
	check_cycles(&faults);
	if (faults.n == 0)
		check_entries(&faults);
	for (unsigned int i = 0; i < spec->n_edges; i++)
		check_shares(&faults, i);
	check_cores(&faults);
	return faults.n;
}
