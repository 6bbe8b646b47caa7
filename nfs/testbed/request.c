#include "testbed/request.h"

#include <string.h>

#include "testbed/chain_request.h"
#include "testbed/settings_json.h"
#include "testbed/traffic_request.h"

static const char *const executions[] = {
	[NF_RUN_TO_COMPLETION] = "run-to-completion",
	[NF_PIPELINE] = "pipeline",
};

static void parse_execution(const json_t *given, struct load *load, struct faults *faults)
{
	const char *name = json_string_value(given);

	if (!given)
		return;
	for (unsigned int i = 0; i < RTE_DIM(executions); i++)
		if (name && executions[i] && strcmp(name, executions[i]) == 0)
			load->execution = (enum nf_execution)i;
	if (load->execution == 0)
		fault(faults, "%s: execution must be run-to-completion or pipeline",
		      load->nf->name);
	else if (!(load->execution &
		   (load->nf->executions ? load->nf->executions : NF_RUN_TO_COMPLETION)))
		fault(faults, "%s cannot execute as %s", load->nf->name, name);
}

static struct settings settings_of(struct load *load)
{
	return (struct settings){
		.of = load_name(load),
		.parameters = load->nf ? load->nf->parameters : load->bench->parameters,
		.n_parameters = load->nf ? load->nf->n_parameters : load->bench->n_parameters,
		.needs_offered = load->bench != NULL,
		.list = load->settings,
		.n = &load->n_settings,
	};
}

static void parse_nf(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *parameters = json_object_get(workload, "parameters");
	struct settings settings = settings_of(load);

	if (!request_traffic(workload, load, faults))
		return;
	settings_size_tables(parameters, &settings, load->traffic.flows);
	settings_read(parameters, &settings, faults);
	parse_execution(json_object_get(workload, "execution"), load, faults);
}

static void parse_bench(const json_t *workload, struct load *load, struct faults *faults)
{
	struct settings settings = settings_of(load);

	settings_read(json_object_get(workload, "parameters"), &settings, faults);
}

static void parse_named(const json_t *workload, bool nf, const char *name, struct load *load,
			struct faults *faults)
{
	if (nf)
		load->nf = nf_find(name);
	else
		load->bench = bench_find(name);
	if (load->nf)
		parse_nf(workload, load, faults);
	else if (load->bench)
		parse_bench(workload, load, faults);
	else
		fault(faults, "%s %s is not known", nf ? "NF" : "bench", name);
}

void request_load(const json_t *workload, struct load *load, struct faults *faults)
{
	const char *kind = json_string_value(json_object_get(workload, "kind"));
	const char *name = json_string_value(json_object_get(workload, "name"));
	const bool nf = kind && strcmp(kind, "nf") == 0;

	*load = (struct load){0};
	if (kind && strcmp(kind, "chain") == 0)
		request_chain(workload, load, faults);
	else if (name && kind && (nf || strcmp(kind, "bench") == 0))
		parse_named(workload, nf, name, load, faults);
	else
		fault(faults,
		      "a workload needs a kind, nf or bench, and a name, or the kind chain");
}

void request_co_location(const json_t *workloads, struct co_location *co_location,
			 struct faults *faults)
{
	const size_t n = json_array_size(workloads);

	co_location->n = 0;
	if (n == 0 || n > MOST_LOADS) {
		fault(faults, "workloads: an array of 1 to %d is needed", MOST_LOADS);
		return;
	}
	for (; co_location->n < n; co_location->n++)
		request_load(json_array_get(workloads, co_location->n),
			     &co_location->loads[co_location->n], faults);
}

/* With `unlimited`, rates of benches are 0. */
static json_t *parameters_json(const struct load *load, bool unlimited)
{
	json_t *parameters = settings_json(load->settings, load->n_settings);

	for (unsigned int i = 0; load->bench && unlimited && i < load->n_settings; i++)
		if (rate_unit(load->settings[i].name) > 0)
			json_object_set_new(parameters, load->settings[i].name, json_real(0));
	return parameters;
}

json_t *load_json(const struct load *load, bool unlimited_rate)
{
	json_t *json;

	if (load->chain)
		return chain_json(load);
	json = json_pack("{s:s, s:s, s:o}", "kind", load->nf ? "nf" : "bench", "name",
			 load_name(load), "parameters", parameters_json(load, unlimited_rate));
	if (!load->nf)
		return json;
	json_object_set_new(json, "traffic", traffic_json(load));
	if (load->execution)
		json_object_set_new(json, "execution", json_string(executions[load->execution]));
	return json;
}
