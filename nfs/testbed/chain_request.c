#include "testbed/chain_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbed/settings_json.h"
#include "testbed/traffic_request.h"

/* Of a request; a chain may have more. */
#define MOST_STAGES 32
#define MOST_CORES 16
#define NO_CORE UINT_MAX

static void name_stage(struct chain_load *chain, const char *name)
{
	const size_t length = strlen(chain->name);

	snprintf(chain->name + length, sizeof(chain->name) - length, "%s%s",
		 length > 0 ? " -> " : "", name);
}

/* Stages of a chain may have the same kind, but have names of their own. */
static void read_stage(const json_t *stage, struct chain_load *chain, struct faults *faults)
{
	const unsigned int at = chain->spec.n_functions++;
	struct chain_function *function = &chain->spec.functions[at];
	const char *name = json_string_value(json_object_get(stage, "name"));

	if (!name) {
		fault(faults, "stage %u of the chain needs a name", at);
		return;
	}
	function->core = NO_CORE;
	function->kind = nf_find(name);
	snprintf(function->name, sizeof(function->name), "%.20s %u", name, at);
	name_stage(chain, name);
	if (!function->kind)
		fault(faults, "NF %s is not known", name);
}

static void read_stages(const json_t *workload, struct chain_load *chain, struct faults *faults)
{
	const json_t *stages = json_object_get(workload, "stages");
	const size_t n = json_array_size(stages);

	if (n == 0 || n > MOST_STAGES) {
		fault(faults, "a chain needs stages, an array of 1 to %d", MOST_STAGES);
		return;
	}
	for (size_t i = 0; i < n; i++)
		read_stage(json_array_get(stages, i), chain, faults);
}

static void place_stage(const json_t *index, unsigned int core, struct chain_load *chain,
			struct faults *faults)
{
	const json_int_t at = json_is_integer(index) ? json_integer_value(index) : -1;

	if (at < 0 || at >= chain->spec.n_functions)
		fault(faults, "cores: %u: there is no such stage", core);
	else if (chain->spec.functions[at].core != NO_CORE)
		fault(faults, "cores: stage %d is on two cores, or twice on one", (int)at);
	else
		chain->spec.functions[at].core = core;
}

static void read_cores(const json_t *workload, struct chain_load *chain, struct faults *faults)
{
	const json_t *cores = json_object_get(workload, "cores");
	const size_t n = json_array_size(cores);

	if (n == 0 || n > MOST_CORES) {
		fault(faults, "a chain needs cores, an array of 1 to %d", MOST_CORES);
		return;
	}
	chain->spec.n_cores = (unsigned int)n;
	for (unsigned int core = 0; core < n; core++) {
		const json_t *stages = json_array_get(cores, core);

		if (json_array_size(stages) == 0)
			fault(faults, "cores: %u: an array of stages is needed", core);
		for (size_t i = 0; i < json_array_size(stages); i++)
			place_stage(json_array_get(stages, i), core, chain, faults);
	}
	for (unsigned int i = 0; i < chain->spec.n_functions; i++)
		if (chain->spec.functions[i].core == NO_CORE)
			fault(faults, "cores: stage %u is on no core", i);
}

static void read_shares(const json_t *workload, struct chain_load *chain, struct faults *faults)
{
	const json_t *shares = json_object_get(workload, "shares");

	for (unsigned int i = 0; i < CHAIN_MOST_CORES; i++)
		chain->shares[i] = 1;
	if (!shares || json_is_null(shares))
		return;
	if (json_array_size(shares) != chain->spec.n_cores) {
		fault(faults, "shares: one is needed for each of %u cores", chain->spec.n_cores);
		return;
	}
	for (unsigned int i = 0; i < chain->spec.n_cores; i++) {
		const json_t *share = json_array_get(shares, i);

		chain->shares[i] = json_number_value(share);
		if (!json_is_number(share) || !(chain->shares[i] > 0 && chain->shares[i] <= 1))
			fault(faults, "shares: %u: it is not above 0 and at most 1", i);
	}
}

static void read_rate(const json_t *workload, struct chain_load *chain, struct faults *faults)
{
	static const struct nf_parameter rate = {"rate_kpps", "offered", 0, 1e6, 0};

	if (json_object_get(workload, rate.name))
		chain->rate_kpps = number_read(workload, &rate, "a chain", faults);
}

static void read_parameters(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *stages = json_object_get(workload, "stages");

	for (unsigned int i = 0; i < load->chain->spec.n_functions; i++) {
		const json_t *given = json_object_get(json_array_get(stages, i), "parameters");
		struct chain_function *function = &load->chain->spec.functions[i];
		struct settings settings = {.of = function->name,
					    .list = function->settings,
					    .n = &function->n_settings};

		if (!function->kind)
			continue;
		settings.parameters = function->kind->parameters;
		settings.n_parameters = function->kind->n_parameters;
		settings_size_tables(given, &settings, load->traffic.flows);
		settings_read(given, &settings, faults);
	}
}

/* Whatever leaves a stage goes to the next one. */
static void add_edges(struct chain_spec *spec)
{
	for (unsigned int i = 0; i + 1 < spec->n_functions; i++)
		spec->edges[spec->n_edges++] = (struct chain_edge){
			.from = (int)i, .to = (int)i + 1, .gate = NF_FORWARD, .share = {1, 1}};
}

void request_chain(const json_t *workload, struct load *load, struct faults *faults)
{
	const unsigned int before = faults->n;

	load->chain = calloc(1, sizeof(*load->chain));
	if (!load->chain) {
		fault(faults, "no memory for a chain");
		return;
	}
	read_stages(workload, load->chain, faults);
	read_cores(workload, load->chain, faults);
	read_shares(workload, load->chain, faults);
	read_rate(workload, load->chain, faults);
	if (faults->n > before) { /* without functions, nothing else can be checked */
		free(load->chain);
		load->chain = NULL;
		return;
	}
	add_edges(&load->chain->spec);
	if (request_traffic(workload, load, faults))
		read_parameters(workload, load, faults);
}

json_t *chain_json(const struct load *load)
{
	const struct chain_spec *spec = &load->chain->spec;
	json_t *stages = json_array(), *core = json_array();

	for (unsigned int i = 0; i < spec->n_functions; i++) {
		const struct chain_function *function = &spec->functions[i];

		json_array_append_new(
			stages, json_pack("{s:s, s:o}", "name", function->kind->name, "parameters",
					  settings_json(function->settings, function->n_settings)));
		json_array_append_new(core, json_integer((json_int_t)i));
	}
	return json_pack("{s:s, s:o, s:[o], s:o}", "kind", "chain", "stages", stages, "cores", core,
			 "traffic", traffic_json(load));
}
