/* Chains in requests of the testbed protocol. */
#include "testbed/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/capture.h"
#include "testbed/machine.h"
#include "testbed/names.h"
#include "testbed/settings_json.h"

/* Traffic of network functions and chains in requests. */

/* A capture has at most as many flows as packets. */
static void parse_capture(const json_t *given, struct load *load, struct faults *faults)
{
	const char *path = json_string_value(given);

	load->traffic.flows = CAPTURE_MOST;
	if (!path || strlen(path) >= sizeof(load->capture))
		fault(faults, "%s: capture is not a file name", load_name(load));
	else if (access(path, R_OK) != 0)
		fault(faults, "%s: capture %s: %s", load_name(load), path, strerror(errno));
	else if (load_alters(load))
		fault(faults, "%s: it changes payloads, which a capture does not renew",
		      load_name(load));
	else
		strcpy(load->capture, path);
}

static void parse_profile(const json_t *traffic, struct load *load, struct faults *faults)
{
	const char *name = load_name(load);

	load->traffic.flows =
		(uint32_t)number_read(traffic, &traffic_attributes[FLOWS], name, faults);
	load->traffic.packet_size =
		(uint16_t)number_read(traffic, &traffic_attributes[PACKET_SIZE], name, faults);
	if (json_object_get(traffic, "mtbr"))
		load->traffic.mtbr = number_read(traffic, &traffic_attributes[MTBR], name, faults);
	if (json_object_get(traffic, traffic_zipf.name))
		load->traffic.zipf = number_read(traffic, &traffic_zipf, name, faults);
}

/* Read the traffic of a workload. False, after adding why, if there is none. */
static bool request_traffic(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *traffic = json_object_get(workload, "traffic");

	if (!json_is_object(traffic)) {
		fault(faults, "%s needs traffic", load_name(load));
		return false;
	}
	if (json_object_get(traffic, "capture"))
		parse_capture(json_object_get(traffic, "capture"), load, faults);
	else
		parse_profile(traffic, load, faults);
	return true;
}

/* Includes time and size of the file: after a change its events are counted again. */
static json_t *capture_json(const char *path)
{
	struct stat now = {0};

	(void)stat(path, &now);
	return json_pack("{s:s, s:I, s:I}", "capture", path, "changed_ns",
			 (json_int_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec, "bytes",
			 (json_int_t)now.st_size);
}

static json_t *traffic_json(const struct load *load)
{
	const struct traffic_profile *traffic = &load->traffic;

	if (load->capture[0])
		return capture_json(load->capture);
	return json_pack("{s:i, s:i, s:f, s:f}", "flows", (int)load_flows(load, 0), "packet_size",
			 (int)traffic->packet_size, "mtbr", traffic->mtbr, "zipf", traffic->zipf);
}

static void read_rate(const json_t *workload, struct load *load, struct faults *faults)
{
	static const struct nf_parameter rate = {"rate_kpps", "offered", 0, 1e6, 0};

	if (json_object_get(workload, rate.name))
		load->rate_kpps = number_read(workload, &rate, load_name(load), faults);
}

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

/* Read a workload of kind "chain" into `load->chain`, which the caller frees. */
static void request_chain(const json_t *workload, struct load *load, struct faults *faults)
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
	read_rate(workload, load, faults);
	if (faults->n > before) { /* without functions, nothing else can be checked */
		free(load->chain);
		load->chain = NULL;
		return;
	}
	add_edges(&load->chain->spec);
	if (request_traffic(workload, load, faults))
		read_parameters(workload, load, faults);
}

/*
 * The JSON of a chain whose events are counted: on one core, with all of its time, and as fast as
 * it goes. Placement and rate do not change what a packet costs in events.
 */
static json_t *chain_json(const struct load *load)
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

/* Which numbers the machine has is checked later. */
static void read_copies(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *given = json_object_get(workload, "cores");
	const json_int_t cores = json_integer_value(given);

	if (!given)
		return;
	load->cores = (unsigned int)cores;
	if (!json_is_integer(given) || cores < 1 || cores > MACHINE_MOST_CORES)
		fault(faults, "%s: cores is no whole number from 1 to %d", load->nf->name,
		      MACHINE_MOST_CORES);
	else if (cores > 1 && (load->capture[0] || load->traffic.zipf > 0))
		fault(faults, "%s: the flows of %s are not divided among %u cores", load->nf->name,
		      load->capture[0] ? "a capture" : "zipf", load->cores);
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

	read_rate(workload, load, faults);
	if (!request_traffic(workload, load, faults))
		return;
	read_copies(workload, load, faults);
	settings_size_tables(parameters, &settings, load_flows(load, 0));
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

static json_t *parameters_json(const struct load *load)
{
	json_t *parameters = settings_json(load->settings, load->n_settings);

	for (unsigned int i = 0; load->bench && i < load->n_settings; i++)
		if (rate_unit(load->settings[i].name) > 0)
			json_object_set_new(parameters, load->settings[i].name, json_real(0));
	return parameters;
}

json_t *load_json(const struct load *load)
{
	json_t *json;

	if (load->chain)
		return chain_json(load);
	json = json_pack("{s:s, s:s, s:o}", "kind", load->nf ? "nf" : "bench", "name",
			 load_name(load), "parameters", parameters_json(load));
	if (!load->nf)
		return json;
	json_object_set_new(json, "traffic", traffic_json(load));
	if (load->execution)
		json_object_set_new(json, "execution", json_string(executions[load->execution]));
	return json;
}
