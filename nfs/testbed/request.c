#include "testbed/request.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "testbed/names.h"

static const char *const executions[] = {
	[NF_RUN_TO_COMPLETION] = "run-to-completion",
	[NF_PIPELINE] = "pipeline",
};

/* A number in the parameter's range; faults name `of`, its owner. */
static double number(const json_t *object, const struct nf_parameter *parameter, const char *of,
		     struct faults *faults)
{
	const json_t *given = json_object_get(object, parameter->name);
	const double value = json_number_value(given);

	if (!given)
		fault(faults, "%s needs %s", of, parameter->name);
	else if (!json_is_number(given))
		fault(faults, "%s: %s is not a number", of, parameter->name);
	else if (!(value >= parameter->low && value <= parameter->high))
		fault(faults, "%s: %s %g is outside [%g, %g]", of, parameter->name, value,
		      parameter->low, parameter->high);
	else
		return value;
	return parameter->low; /* which any type can hold */
}

static void add_setting(struct load *load, const char *name, double value)
{
	if (load->n_settings < NF_MOST_PARAMETERS)
		load->settings[load->n_settings++] = (struct nf_setting){name, value};
}

/* Given parameters must exist, and a bench must be given all that the testbed offers. */
static void parse_parameters(const json_t *given, const struct nf_parameter *parameters,
			     unsigned int n, struct load *load, struct faults *faults)
{
	const char *of = load_name(load), *name;
	json_t *value;

	if (given && !json_is_object(given)) {
		fault(faults, "%s: parameters are not an object", of);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		const bool needed = load->bench && offered_parameter(parameters[i].name);

		if (needed || json_object_get(given, parameters[i].name))
			add_setting(load, parameters[i].name,
				    number(given, &parameters[i], of, faults));
	}
	json_object_foreach((json_t *)(uintptr_t)given, name, value)
	{
		unsigned int i = 0;

		while (i < n && strcmp(parameters[i].name, name) != 0)
			i++;
		if (i == n)
			fault(faults, "%s has no parameter %s", of, name);
	}
}

/* By default tables have twice as many entries as there are flows: full hash tables are slow. */
static void size_tables(const json_t *given, struct load *load)
{
	for (unsigned int i = 0; i < load->nf->n_parameters; i++) {
		const struct nf_parameter *parameter = &load->nf->parameters[i];
		const double entries = 2.0 * load->traffic.flows;

		if (is_flow_table(parameter->name) && !json_object_get(given, parameter->name))
			add_setting(load, parameter->name,
				    fmin(fmax(entries, parameter->low), parameter->high));
	}
}

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

/* A capture has at most as many flows as packets. */
static void parse_capture(const json_t *given, struct load *load, struct faults *faults)
{
	const char *path = json_string_value(given);

	load->traffic.flows = TRAFFIC_CAPTURED;
	if (!path || strlen(path) >= sizeof(load->capture))
		fault(faults, "%s: capture is not a file name", load->nf->name);
	else if (access(path, R_OK) != 0)
		fault(faults, "%s: capture %s: %s", load->nf->name, path, strerror(errno));
	else
		strcpy(load->capture, path);
}

static void parse_profile(const json_t *traffic, struct load *load, struct faults *faults)
{
	const char *name = load->nf->name;

	load->traffic.flows = (uint32_t)number(traffic, &traffic_attributes[FLOWS], name, faults);
	load->traffic.packet_size =
		(uint16_t)number(traffic, &traffic_attributes[PACKET_SIZE], name, faults);
	if (json_object_get(traffic, "mtbr"))
		load->traffic.mtbr = number(traffic, &traffic_attributes[MTBR], name, faults);
	if (json_object_get(traffic, traffic_zipf.name))
		load->traffic.zipf = number(traffic, &traffic_zipf, name, faults);
}

static void parse_nf(const json_t *workload, struct load *load, struct faults *faults)
{
	const json_t *traffic = json_object_get(workload, "traffic");

	if (!json_is_object(traffic)) {
		fault(faults, "%s needs traffic", load->nf->name);
		return;
	}
	if (json_object_get(traffic, "capture"))
		parse_capture(json_object_get(traffic, "capture"), load, faults);
	else
		parse_profile(traffic, load, faults);
	size_tables(json_object_get(workload, "parameters"), load);
	parse_parameters(json_object_get(workload, "parameters"), load->nf->parameters,
			 load->nf->n_parameters, load, faults);
	parse_execution(json_object_get(workload, "execution"), load, faults);
}

void request_load(const json_t *workload, struct load *load, struct faults *faults)
{
	const char *kind = json_string_value(json_object_get(workload, "kind"));
	const char *name = json_string_value(json_object_get(workload, "name"));

	*load = (struct load){0};
	if (!name || !kind || (strcmp(kind, "nf") != 0 && strcmp(kind, "bench") != 0)) {
		fault(faults, "a workload needs a kind, nf or bench, and a name");
		return;
	}
	if (strcmp(kind, "nf") == 0)
		load->nf = nf_find(name);
	else
		load->bench = bench_find(name);
	if (load->nf)
		parse_nf(workload, load, faults);
	else if (load->bench)
		parse_parameters(json_object_get(workload, "parameters"), load->bench->parameters,
				 load->bench->n_parameters, load, faults);
	else
		fault(faults, "%s %s is not known", strcmp(kind, "nf") == 0 ? "NF" : "bench", name);
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

static json_t *parameters_json(const struct load *load, bool unlimited_rate)
{
	json_t *parameters = json_object();

	for (unsigned int i = 0; i < load->n_settings; i++) {
		const struct nf_setting *setting = &load->settings[i];
		const bool rate = load->bench && rate_unit(setting->name) > 0;

		json_object_set_new(parameters, setting->name,
				    json_real(rate && unlimited_rate ? 0 : setting->value));
	}
	return parameters;
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
	return json_pack("{s:i, s:i, s:f, s:f}", "flows", (int)traffic->flows, "packet_size",
			 (int)traffic->packet_size, "mtbr", traffic->mtbr, "zipf", traffic->zipf);
}

json_t *load_json(const struct load *load, bool unlimited_rate)
{
	json_t *json =
		json_pack("{s:s, s:s, s:o}", "kind", load->nf ? "nf" : "bench", "name",
			  load_name(load), "parameters", parameters_json(load, unlimited_rate));

	if (!load->nf)
		return json;
	json_object_set_new(json, "traffic", traffic_json(load));
	if (load->execution)
		json_object_set_new(json, "execution", json_string(executions[load->execution]));
	return json;
}
