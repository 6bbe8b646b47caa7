#include <stdio.h>

#include <rte_errno.h>

#include "core/chain_parts.h"
#include "core/memory.h"

void chain_explain(const struct chain_spec *spec, unsigned int line, const char *name)
{
	if (line)
		fprintf(stderr, "%s:%u: %s: ", spec->source ? spec->source : "chain", line, name);
	else
		fprintf(stderr, "%s: %s: ", spec->source ? spec->source : "chain", name);
}

bool chain_set_limits(const struct chain_spec *spec, unsigned int line, const char *name,
		      const struct share *shares, struct ways *ways)
{
	if (share_limits(shares, ways->n, SPLIT_RANGE, ways->limits))
		return true;
	chain_explain(spec, line, name);
	fprintf(stderr, "the shares have no common denominator below 2^100\n");
	return false;
}

/* The edges of one gate of a function, with their limits; false after printing why. */
static bool make_gate(const struct chain_spec *spec, unsigned int at, struct place *place,
		      uint8_t number)
{
	struct gate *gate = &place->gates[number];
	struct share shares[CHAIN_MOST_WAYS];
	uint16_t edge_number = 0;
	unsigned int line = 0;

	gate->ways.salt = spec->functions[at].salt;
	for (unsigned int i = 0; i < spec->n_edges; i++) {
		const struct chain_edge *edge = &spec->edges[i];

		if (edge->from != (int)at)
			continue;
		if (edge->gate == number) {
			line = line ? line : edge->line;
			shares[gate->ways.n] = edge->share;
			gate->edges[gate->ways.n++] = edge_number;
		}
		edge_number++;
	}
	place->n_edges = edge_number;
	return gate->ways.n == 0 || chain_set_limits(spec, line, place->name, shares, &gate->ways);
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
			chain_explain(spec, edge->line, place->name);
			fprintf(stderr, "has no gate %d: %s has %u numbered gates as it is set\n",
				edge->gate - NF_BRANCH, place->nf->kind->name, branches);
			faults++;
		}
	}
	for (unsigned int gate = 0; gate < place->n_gates; gate++)
		faults += !make_gate(spec, at, place, (uint8_t)gate);
	for (unsigned int gate = NF_BRANCH; gate < place->n_gates; gate++) {
		if (place->gates[gate].ways.n > 0)
			continue;
		chain_explain(spec, spec->functions[at].line, place->name);
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
	place->holds = function->kind->poll || function->kind->flush;
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
	if (make_places(chain, spec) && make_cores(chain, spec) && chain_make_stops(chain, spec))
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
	nf_free(chain->entries);
	nf_free(chain);
}
