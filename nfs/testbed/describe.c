#include "testbed/describe.h"

#include <math.h>
#include <stdio.h>

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

static json_t *nfs(const struct testbed *testbed)
{
	json_t *nfs = json_array();

	for (const struct nf_kind *nf = nf_first(); nf; nf = nf->next) {
		char lacks[128];

		testbed_lacks(testbed, nf->accelerators, lacks, sizeof(lacks));
		if (lacks[0])
			continue;
		json_array_append_new(nfs,
				      json_pack("{s:s, s:i, s:o}", "name", nf->name, "cores", 1,
						"accelerators", names_of(nf->accelerators)));
	}
	return nfs;
}

/* An array cannot be larger than twice the cache and be worse for it. */
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
		const struct nf_parameter *able = &bench->parameters[i];
		const struct nf_parameter *offered = offered_parameter(able->name);

		if (offered)
			json_object_set_new(ranges, able->name,
					    json_pack("[f, f]", fmax(offered->low, able->low),
						      fmin(highest(testbed, offered), able->high)));
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

static void add_traffic(json_t *told)
{
	json_t *attributes = json_object(), *usual = json_object();

	for (int i = 0; i < TRAFFIC_ATTRIBUTES; i++) {
		const struct nf_parameter *attribute = &traffic_attributes[i];

		json_object_set_new(attributes, attribute->name,
				    json_pack("[f, f]", attribute->low, attribute->high));
		json_object_set_new(usual, attribute->name, json_real(attribute->usual));
	}
	json_object_set_new(told, "attributes", attributes);
	json_object_set_new(told, "default_traffic", usual);
}

static json_t *null_control(const struct null_control *control)
{
	if (control->taken_s == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:b}", "alone_mops", control->alone_mops,
			 "beside_pct", control->beside_pct, "repeat_pct", control->repeat_pct,
			 "standard_error_pct", control->standard_error_pct, "too_noisy",
			 control->too_noisy);
}

json_t *describe(const struct testbed *testbed)
{
	json_t *nic = json_pack("{s:s, s:i, s:I, s:o}", "model", testbed->name, "cores",
				(int)testbed_cores(testbed), "llc_bytes",
				(json_int_t)testbed->machine.last_level.bytes, "accelerators",
				names_of(offered_accelerators(testbed)));
	json_t *told =
		json_pack("{s:s, s:b, s:i, s:o, s:[s, s, s, s, s, s, s]}", "name", testbed->name,
			  "simulated", 0, "protocol", 1, "nic", nic, "counters", "ipc", "irt",
			  "l2crd", "l2cwr", "memrd", "memwr", "wss");

	add_traffic(told);
	json_object_set_new(told, "nfs", nfs(testbed));
	json_object_set_new(told, "benches", benches(testbed));
	json_object_set_new(told, "shared_client_core",
			    json_boolean(testbed->options.share_client_core));
	json_object_set_new(told, "null_control", null_control(&testbed->null_control));
	return told;
}

void describe_left_out(const struct testbed *testbed)
{
	for (const struct nf_kind *nf = nf_first(); nf; nf = nf->next) {
		char lacks[128];

		testbed_lacks(testbed, nf->accelerators, lacks, sizeof(lacks));
		if (lacks[0])
			fprintf(stderr, "testbed: %s is left out: %s\n", nf->name, lacks);
	}
}
