#include <stdio.h>

#include <rte_errno.h>

#include "core/chain_parts.h"
#include "core/memory.h"

#define MOST_TARGETS (CHAIN_MOST_STOPS * 8)

/* Print where a fault of a chain is: FILE:LINE: NAME. */
static void chain_explain(const struct chain_spec *spec, unsigned int line, const char *name)
{
	if (line)
		fprintf(stderr, "%s:%u: %s: ", spec->source ? spec->source : "chain", line, name);
	else
		fprintf(stderr, "%s: %s: ", spec->source ? spec->source : "chain", name);
}

/* Compute the limits of shares; false after printing why. */
static bool chain_set_limits(const struct chain_spec *spec, unsigned int line, const char *name,
			     const struct share *shares, struct ways *ways)
{
	if (share_limits(shares, ways->n, SPLIT_RANGE, ways->limits))
		return true;
	chain_explain(spec, line, name);
	fprintf(stderr, "the shares have no common denominator below 2^100\n");
	return false;
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

/* Unfold the graph behind each entry; false after printing why. */
static bool chain_make_stops(struct chain *chain, const struct chain_spec *spec)
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

static struct nf *make_instance(const struct chain_function *function,
				const struct chain_config *config)
{
	struct nf_config of_nf = {.name = function->kind->name,
				  .execution = function->execution,
				  .spare = config->spare,
				  .begins_at_random = config->begins_at_random};

	struct nf *nf;

	memcpy(of_nf.accelerators, config->accelerators, sizeof(of_nf.accelerators));
	nf = nf_create(&of_nf, function->settings, function->n_settings);
	if (!nf || !config->counts_rules || nf_count_rules(nf))
		return nf;
	nf_destroy(nf);
	return NULL;
}

struct nf *chain_make_instance(const struct chain *chain, const struct chain_spec *spec,
			       unsigned int at)
{
	struct nf *nf = make_instance(&spec->functions[at], &chain->config);

	if (!nf || nf_branches(nf) == nf_branches(chain->places[at]->nf))
		return nf;
	chain_explain(spec, spec->functions[at].line, spec->functions[at].name);
	fprintf(stderr, "has other gates than before\n");
	nf_destroy(nf);
	return NULL;
}

void chain_exchange(struct chain *chain, unsigned int at, struct nf *nf)
{
	struct nf *before = chain->places[at]->nf;

	memcpy(nf->counters, before->counters, sizeof(nf->counters));
	if (nf->kind->take_over)
		nf->kind->take_over(nf, before);
	nf_destroy(before);
	chain->places[at]->nf = nf;
}

static struct place *make_place(const struct chain_spec *spec, unsigned int at,
				const struct chain_config *config)
{
	const struct chain_function *function = &spec->functions[at];
	struct place *place = nf_zalloc_for(function->name, sizeof(*place));

	if (!place)
		return NULL;
	snprintf(place->name, sizeof(place->name), "%s", function->name);
	place->core = function->core;
	place->holds = function->kind->poll || function->kind->flush;
	place->nf = make_instance(function, config);
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
