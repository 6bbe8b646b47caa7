#include <stdio.h>

#include <rte_errno.h>

#include "core/chain_parts.h"
#include "core/memory.h"

#define MOST_TARGETS (CHAIN_MOST_STOPS * 8)

static void explain(const struct chain_spec *spec, unsigned int line, const char *name)
{
	if (line)
		fprintf(stderr, "%s:%u: %s: ", spec->source ? spec->source : "chain", line, name);
	else
		fprintf(stderr, "%s: %s: ", spec->source ? spec->source : "chain", name);
}

/* Add an edge to its gate, with limits in proportion to the shares. */
static bool add_way(const struct chain_spec *spec, struct place *place,
		    const struct chain_edge *edge)
{
	struct gate *gate = &place->gates[edge->gate];
	const double before = gate->n ? gate->ways[gate->n - 1].limit : 0;
	const double limit = before + edge->share * 4294967296.0;

	if (gate->n == CHAIN_MOST_WAYS) {
		explain(spec, edge->line, place->name);
		fprintf(stderr, "more than %d edges by one gate\n", CHAIN_MOST_WAYS);
		return false;
	}
	gate->ways[gate->n].limit = limit >= UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
	gate->ways[gate->n++].edge = (uint8_t)place->n_edges++;
	return true;
}

/* Each numbered gate must lead somewhere, and each edge must have a gate. */
static bool connect_gates(const struct chain_spec *spec, unsigned int at, struct place *place)
{
	const unsigned int branches = nf_branches(place->nf);
	unsigned int faults = 0;

	place->n_gates = NF_BRANCH + branches;
	place->gates = nf_zalloc_for(place->name, place->n_gates * sizeof(*place->gates));
	if (!place->gates)
		return false;
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from != (int)at)
			continue;
		if (edge->gate >= place->n_gates) {
			explain(spec, edge->line, place->name);
			fprintf(stderr, "has no gate %d: %s has %u numbered gates as it is set\n",
				edge->gate - NF_BRANCH, place->nf->kind->name, branches);
			faults++;
		} else {
			faults += !add_way(spec, place, edge);
		}
	}
	for (unsigned int gate = NF_BRANCH; gate < place->n_gates; gate++) {
		if (place->gates[gate].n > 0)
			continue;
		explain(spec, spec->functions[at].line, place->name);
		fprintf(stderr, "gate %u leads nowhere\n", gate - NF_BRANCH);
		faults++;
	}
	return faults == 0;
}

static struct place *make_place(const struct chain_spec *spec, unsigned int at,
				const struct chain_config *config)
{
	const struct chain_function *function = &spec->functions[at];
	struct nf_config of_nf = {.name = function->kind->name,
				  .execution = function->execution,
				  .spare = config->spare};
	struct place *place = nf_zalloc_for(function->name, sizeof(*place));

	if (!place)
		return NULL;
	snprintf(place->name, sizeof(place->name), "%s", function->name);
	place->core = function->core;
	memcpy(of_nf.accelerators, config->accelerators, sizeof(of_nf.accelerators));
	place->nf = nf_create(&of_nf, function->settings, function->n_settings);
	if (place->nf && connect_gates(spec, at, place))
		return place;
	if (!place->nf && function->line)
		fprintf(stderr, "%s:%u: %s cannot be created\n",
			spec->source ? spec->source : "chain", function->line, function->name);
	nf_destroy(place->nf);
	nf_free(place->gates);
	nf_free(place);
	return NULL;
}

static bool make_places(struct chain *chain, const struct chain_spec *spec)
{
	bool made = true;

	for (unsigned int i = 0; i < spec->n_functions; i++) {
		struct place *place = make_place(spec, i, &chain->config);

		if (place)
			chain->places[chain->n_places++] = place;
		else
			made = false;
	}
	return made;
}

/* A ring for each core that packets reach from another one. */
static bool make_cores(struct chain *chain, const struct chain_spec *spec)
{
	static unsigned int n_created;
	char name[RTE_RING_NAMESIZE];

	for (; chain->n_cores < spec->n_cores; chain->n_cores++) {
		struct chain_core *core = nf_zalloc_for("chain", sizeof(*core));

		if (!core)
			return false;
		chain->cores[chain->n_cores] = core;
		snprintf(name, sizeof(name), "chain_%u", n_created++);
		core->ring = rte_ring_create(name, RING_PACKETS, SOCKET_ID_ANY,
					     RING_F_SC_DEQ |
						     (spec->n_cores == 2 ? RING_F_SP_ENQ : 0));
		if (!core->ring) {
			fprintf(stderr, "chain: no memory for a ring: %s\n",
				rte_strerror(rte_errno));
			chain->n_cores++;
			return false;
		}
	}
	return true;
}

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

static bool make_stops(struct chain *chain, const struct chain_spec *spec)
{
	bool entered[CHAIN_MOST_FUNCTIONS] = {false};

	chain->targets = nf_zalloc_for("chain", MOST_TARGETS * sizeof(*chain->targets));
	if (!chain->targets)
		return false;
	for (unsigned int i = 0; i < spec->n_edges; i++)
		if (spec->edges[i].to >= 0)
			entered[spec->edges[i].to] = true;
	chain->inside = NO_STOP;
	for (unsigned int i = 0; i < spec->n_functions && chain->inside == NO_STOP; i++) {
		if (entered[i])
			continue;
		chain->inside = unfold(chain, spec, i, NO_STOP);
		if (chain->inside == NO_STOP)
			return false;
	}
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];
		uint16_t stop;

		if (edge->from >= 0)
			continue;
		stop = unfold(chain, spec, (unsigned int)edge->to, NO_STOP);
		if (stop == NO_STOP)
			return false;
		chain->entries[chain->n_entries++] = (struct entry){edge->service, stop};
	}
	if (chain->inside == NO_STOP)
		chain->inside = chain->entries[0].stop;
	chain->outside = last_of_first_way(chain, chain->inside);
	return true;
}

static bool leads_one_way(const struct chain_spec *spec)
{
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from >= 0 && edge->to >= 0 &&
		    spec->functions[edge->from].core > spec->functions[edge->to].core)
			return false;
	}
	return true;
}

struct chain *chain_create(const struct chain_spec *spec, const struct chain_config *config)
{
	struct chain *chain = nf_zalloc_for("chain", sizeof(*chain));

	if (!chain)
		return NULL;
	chain->config = *config;
	chain->one_way = leads_one_way(spec);
	if (make_places(chain, spec) && make_cores(chain, spec) && make_stops(chain, spec))
		return chain;
	chain_destroy(chain);
	return NULL;
}

void chain_destroy(struct chain *chain)
{
	if (!chain)
		return;
	for (unsigned int i = 0; i < chain->n_places; i++) {
		nf_destroy(chain->places[i]->nf);
		nf_free(chain->places[i]->gates);
		nf_free(chain->places[i]);
	}
	for (unsigned int i = 0; i < chain->n_cores; i++) {
		rte_ring_free(chain->cores[i]->ring);
		nf_free(chain->cores[i]);
	}
	nf_free(chain->targets);
	nf_free(chain);
}
