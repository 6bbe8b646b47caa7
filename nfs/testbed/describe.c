#include "testbed/describe.h"

#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "testbed/names.h"

static json_t *names_of(unsigned int accelerators)
{
	json_t *names = json_array();

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (accelerators & NF_USES(kind))
			json_array_append_new(names, json_string(accelerator_names[kind]));
	return names;
}

static unsigned int offered_accelerators(const struct testbed *testbed)
{
	unsigned int offered = 0;

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (testbed->engines.kinds[kind])
			offered |= NF_USES(kind);
	return offered;
}

json_t *describe_core_counts(const struct testbed *testbed)
{
	json_t *counts = json_array();

	for (unsigned int cores = 1; testbed_gives(testbed, cores); cores *= 2)
		json_array_append_new(counts, json_integer(cores));
	return counts;
}

static json_t *nfs(const struct testbed *testbed)
{
	json_t *nfs = json_array();

	for (const struct nf_kind *nf = nf_first(); nf; nf = nf->next) {
		char missing[128];

		testbed_missing(testbed, nf->accelerators, missing, sizeof(missing));
		if (missing[0])
			continue;
		json_array_append_new(nfs,
				      json_pack("{s:s, s:i, s:o, s:o}", "name", nf->name, "cores",
						1, "core_counts", describe_core_counts(testbed),
						"accelerators", names_of(nf->accelerators)));
	}
	return nfs;
}

/* Contention does not grow with arrays beyond twice the cache. */
static double highest(const struct testbed *testbed, const struct nf_parameter *parameter)
{
	if (strcmp(parameter->name, "wss_mb") == 0)
		return round(2e-6 * (double)testbed->machine.last_level.bytes);
	return parameter->high;
}

static json_t *parameters(const struct testbed *testbed, const struct bench_kind *bench)
{
	json_t *ranges = json_object();

	for (unsigned int i = 0; i < bench->n_parameters; i++) {
		const struct nf_parameter *supported = &bench->parameters[i];
		const struct nf_parameter *offered = offered_parameter(supported->name);

		if (offered)
			json_object_set_new(
				ranges, supported->name,
				json_pack("[f, f]", fmax(offered->low, supported->low),
					  fmin(highest(testbed, offered), supported->high)));
	}
	return ranges;
}

static json_t *benches(const struct testbed *testbed)
{
	json_t *benches = json_array();

	for (const struct bench_kind *bench = bench_first(); bench; bench = bench->next)
		if (testbed_offers(testbed, bench))
			json_array_append_new(
				benches, json_pack("{s:s, s:i, s:o}", "name", bench->name, "cores",
						   1, "parameters", parameters(testbed, bench)));
	return benches;
}

static void add_traffic(json_t *description)
{
	json_t *attributes = json_object(), *defaults = json_object();

	for (int i = 0; i < TRAFFIC_ATTRIBUTES; i++) {
		const struct nf_parameter *attribute = &traffic_attributes[i];

		json_object_set_new(attributes, attribute->name,
				    json_pack("[f, f]", attribute->low, attribute->high));
		json_object_set_new(defaults, attribute->name, json_real(attribute->default_value));
	}
	json_object_set_new(description, "attributes", attributes);
	json_object_set_new(description, "default_traffic", defaults);
}

static json_t *null_control(const struct null_control *control)
{
	if (control->taken_s == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "alone_mops", control->alone_mops,
			 "beside_pct", control->beside_pct, "beside_error_pct",
			 control->beside_error_pct, "repeat_pct", control->repeat_pct,
			 "repeat_error_pct", control->repeat_error_pct, "standard_error_pct",
			 control->standard_error_pct, "too_noisy", control->too_noisy);
}

json_t *describe(const struct testbed *testbed)
{
	json_t *nic = json_pack("{s:s, s:i, s:I, s:f, s:o}", "model", testbed->name, "cores",
				(int)testbed_cores(testbed), "llc_bytes",
				(json_int_t)testbed->machine.last_level.bytes, "clock_mhz",
				clock_tsc_hz() / 1e6, "accelerators",
				names_of(offered_accelerators(testbed)));
	json_t *description =
		json_pack("{s:s, s:b, s:i, s:o, s:[s, s, s, s, s, s, s]}", "name", testbed->name,
			  "simulated", 0, "protocol", 1, "nic", nic, "counters", "ipc", "irt",
			  "l2crd", "l2cwr", "memrd", "memwr", "wss");

	add_traffic(description);
	json_object_set_new(description, "nfs", nfs(testbed));
	json_object_set_new(description, "benches", benches(testbed));
	json_object_set_new(description, "chains",
			    json_boolean(!testbed->options.share_client_core));
	json_object_set_new(description, "paced", json_true());
	json_object_set_new(description, "shared_client_core",
			    json_boolean(testbed->options.share_client_core));
	json_object_set_new(description, "null_control", null_control(&testbed->null_control));
	return description;
}

void print_omitted(const struct testbed *testbed)
{
	for (const struct nf_kind *nf = nf_first(); nf; nf = nf->next) {
		char missing[128];

		testbed_missing(testbed, nf->accelerators, missing, sizeof(missing));
		if (missing[0])
			fprintf(stderr, "testbed: %s is omitted: %s\n", nf->name, missing);
	}
}
