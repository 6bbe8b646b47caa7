#include <stdio.h>

#include "core/chain_parts.h"
#include "core/memory.h"

#define MOST_TARGETS (CHAIN_MOST_STOPS * 8)

/* Unfold a function and all behind it; returns its stop, or NO_STOP if there are too many. */
static uint16_t unfold(struct chain *chain, const struct chain_spec *spec, unsigned int at,
		       uint16_t parent)
{
	const uint16_t stop = (uint16_t)chain->n_stops;
	uint32_t target = chain->n_targets;

	if (chain->n_stops == CHAIN_MOST_STOPS ||
	    chain->n_targets + chain->places[at]->n_edges > MOST_TARGETS) {
		fprintf(stderr, "%s: more than %d ways through the chain\n",
			spec->source ? spec->source : "chain", CHAIN_MOST_STOPS);
		return NO_STOP;
	}
	chain->n_stops++;
	chain->n_targets += chain->places[at]->n_edges;
	chain->stops[stop] = (struct stop){(uint16_t)at, parent, target};
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];
		uint16_t next = NO_STOP;

		if (edge->from != (int)at)
			continue;
		if (edge->to >= 0) {
			next = unfold(chain, spec, (unsigned int)edge->to, stop);
			if (next == NO_STOP)
				return NO_STOP;
		}
		chain->targets[target++] =
			(struct target){next, edge->to == CHAIN_OUT_NSH, edge->service};
	}
	return stop;
}

/* Where packets from outside enter: at the end of the first way. */
static uint16_t last_of_first_way(const struct chain *chain, uint16_t stop)
{
	for (;;) {
		const struct stop *at = &chain->stops[stop];
		uint16_t next = NO_STOP;

		for (unsigned int i = 0; i < chain->places[at->place]->n_edges; i++)
			if (next == NO_STOP)
				next = chain->targets[at->targets + i].stop;
		if (next == NO_STOP)
			return stop;
		stop = next;
	}
}

/* Unfold the chain behind the function where packets without a service enter, if there is one. */
static bool make_usual_entry(struct chain *chain, const struct chain_spec *spec)
{
	bool entered[CHAIN_MOST_FUNCTIONS] = {false};

	for (unsigned int i = 0; i < spec->n_edges; i++)
		if (spec->edges[i].to >= 0)
			entered[spec->edges[i].to] = true;
	chain->inside = NO_STOP;
	for (unsigned int i = 0; i < spec->n_functions; i++) {
		if (entered[i])
			continue;
		chain->inside = unfold(chain, spec, i, NO_STOP);
		return chain->inside != NO_STOP;
	}
	return true;
}

static struct entry *add_entry(struct chain *chain, uint32_t key, uint32_t salt)
{
	struct entry *entry = &chain->entries[chain->n_entries++];
	uint32_t slot = entry_slot(key);

	while (chain->entry_slots[slot] != 0)
		slot = (slot + 1) % ENTRY_SLOTS;
	chain->entry_slots[slot] = (uint16_t)chain->n_entries;
	entry->key = key;
	entry->ways.salt = salt;
	return entry;
}

/* The entry of a service, of which `first` is the first edge; false after printing why. */
static bool make_entry(struct chain *chain, const struct chain_spec *spec, unsigned int first)
{
	const uint32_t key = service_key(spec->edges[first].service);
	struct entry *entry = add_entry(chain, key, spec->edges[first].salt);
	struct share shares[CHAIN_MOST_WAYS];

	for (unsigned int i = first; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from >= 0 || service_key(edge->service) != key)
			continue;
		entry->stops[entry->ways.n] = unfold(chain, spec, (unsigned int)edge->to, NO_STOP);
		if (entry->stops[entry->ways.n] == NO_STOP)
			return false;
		shares[entry->ways.n++] = edge->share;
	}
	return chain_set_limits(spec, spec->edges[first].line, "nsh", shares, &entry->ways);
}

/* Whether an edge before this one enters by the same service. */
static bool enters_already(const struct chain_spec *spec, unsigned int at)
{
	for (unsigned int i = 0; i < at; i++)
		if (spec->edges[i].from < 0 && service_key(spec->edges[i].service) ==
						       service_key(spec->edges[at].service))
			return true;
	return false;
}

bool chain_make_stops(struct chain *chain, const struct chain_spec *spec)
{
	chain->targets = nf_zalloc_for("chain", MOST_TARGETS * sizeof(*chain->targets));
	chain->entries = nf_zalloc_for("chain", (spec->n_edges + 1) * sizeof(*chain->entries));
	if (!chain->targets || !chain->entries || !make_usual_entry(chain, spec))
		return false;
	for (unsigned int i = 0; i < spec->n_edges; i++)
		if (spec->edges[i].from < 0 && !enters_already(spec, i) &&
		    !make_entry(chain, spec, i))
			return false;
	chain->outside = last_of_first_way(
		chain, chain->inside == NO_STOP ? chain->entries[0].stops[0] : chain->inside);
	return true;
}
