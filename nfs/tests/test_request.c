#include "core/capture.h"
#include "tests/requests.h"

static double setting(const struct load *load, const char *name)
{
	return value_of(load->settings, load->n_settings, name);
}

/* A network function gets its traffic, and by default tables for twice the flows. */
TEST(tables_have_twice_the_flows)
{
	struct faults faults;
	struct load load = parsed("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": "
				  "{\"flows\": 5000, \"packet_size\": 100, \"mtbr\": 1}}",
				  &faults);

	assert_int_equal(faults.n, 0);
	assert_int_equal(load.traffic.flows, 5000);
	assert_int_equal(load.traffic.packet_size, 100);
	assert_float_equal(load.traffic.mtbr, 1, 0);
	assert_float_equal(setting(&load, "flows"), 10000, 0);
	load = parsed("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": {\"flows\": 5000, "
		      "\"packet_size\": 100}, \"parameters\": {\"flows\": 64, \"timeout_s\": 1}}",
		      &faults);
	assert_int_equal(faults.n, 0);
	assert_float_equal(setting(&load, "flows"), 64, 0);
	assert_float_equal(setting(&load, "timeout_s"), 1, 0);
}

/* A load written as JSON and read again, as for counting. */
static struct load from_json_again(const struct load *load, struct faults *faults)
{
	json_t *json = load_json(load);
	char *text = json_dumps(json, 0);
	struct load again = parsed(text, faults);

	json_decref(json);
	free(text);
	return again;
}

/* Traffic may have flows of unequal popularity or come from a capture, also after JSON. */
TEST(reads_zipf_and_captures)
{
	struct faults faults;
	struct load load = parsed("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": "
				  "{\"flows\": 5000, \"packet_size\": 100, \"zipf\": 1.5}}",
				  &faults);

	assert_int_equal(faults.n, 0);
	assert_float_equal(from_json_again(&load, &faults).traffic.zipf, 1.5, 0);
	load = parsed("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": "
		      "{\"capture\": \"/proc/self/exe\"}}",
		      &faults);
	assert_int_equal(faults.n, 0);
	load = from_json_again(&load, &faults);
	assert_int_equal(faults.n, 0);
	assert_string_equal(load.capture, "/proc/self/exe");
	assert_float_equal(setting(&load, "flows"), 2 * CAPTURE_MOST, 0);
	parsed("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": "
	       "{\"capture\": \"no-such-file.pcap\"}}",
	       &faults);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.text,
			    "FlowStats: capture no-such-file.pcap: No such file or directory");
}

/* A load written as JSON is read as the same load, but for the rate of a bench, which is 0. */
TEST(loads_survive_json)
{
	struct faults faults;
	struct load load = parsed("{\"kind\": \"bench\", \"name\": \"mem-bench\", \"parameters\": "
				  "{\"wss_mb\": 2, \"access_mops\": 30, \"pattern\": 1}}",
				  &faults);
	struct load again = from_json_again(&load, &faults);

	assert_int_equal(faults.n, 0);
	assert_float_equal(setting(&again, "wss_mb"), 2, 0);
	assert_float_equal(setting(&again, "access_mops"), 0, 0);
	assert_float_equal(setting(&again, "pattern"), 1, 0);
}

#define NAT_ON(fields)                                                                             \
	"{\"kind\": \"nf\", \"name\": \"NAT\", " fields ", \"traffic\": {\"flows\": 1001, "        \
	"\"packet_size\": 100, \"zipf\": 0}}"

/* Copies have their share of the flows, with tables for twice as many; one of them is counted. */
TEST(flows_are_divided_among_cores)
{
	struct faults faults;
	struct load load = parsed(NAT_ON("\"cores\": 2, \"rate_kpps\": 7"), &faults);
	struct load counted = from_json_again(&load, &faults);

	assert_int_equal(faults.n, 0);
	assert_int_equal(load_cores(&load), 2);
	assert_int_equal(load_flows(&load, 0), 501);
	assert_int_equal(load_flows(&load, 1), 500);
	assert_float_equal(setting(&load, "sessions"), 1002, 0);
	assert_float_equal(load_limit(&load), 7000, 0);
	assert_int_equal(load_cores(&counted), 1);
	assert_int_equal(counted.traffic.flows, 501);
	assert_float_equal(setting(&counted, "sessions"), 1002, 0);
	assert_true(isinf(load_limit(&counted)));
}

/* A rate below 0, cores that are no whole number, and flows that cannot be divided are faults. */
TEST(rejects_rates_and_cores)
{
	static const struct {
		const char *text, *fault;
	} cases[] = {
		{NAT_ON("\"rate_kpps\": -1"), "NAT: rate_kpps -1 is outside [0, 1e+06]"},
		{NAT_ON("\"rate_kpps\": \"7\""), "NAT: rate_kpps is not a number"},
		{NAT_ON("\"cores\": 0"), "NAT: cores is no whole number from 1 to 64"},
		{NAT_ON("\"cores\": 1.5"), "NAT: cores is no whole number from 1 to 64"},
		{"{\"kind\": \"nf\", \"name\": \"NAT\", \"cores\": 2, \"traffic\": {\"flows\": 9, "
		 "\"packet_size\": 100, \"zipf\": 1}}",
		 "NAT: the flows of zipf are not divided among 2 cores"},
		{"{\"kind\": \"nf\", \"name\": \"NAT\", \"cores\": 2, \"traffic\": {\"capture\": "
		 "\"/proc/self/exe\"}}",
		 "NAT: the flows of a capture are not divided among 2 cores"},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct faults faults;

		parsed(cases[i].text, &faults);
		assert_int_equal(faults.n, 1);
		assert_string_equal(faults.text, cases[i].fault);
	}
}

/* All faults are listed; those beyond the buffer are cut off. */
TEST(every_fault_is_listed)
{
	struct faults faults;

	parsed("{\"kind\": \"bench\", \"name\": \"mem-bench\", \"parameters\": {\"x\": 1}}",
	       &faults);
	assert_int_equal(faults.n, 3);
	assert_string_equal(faults.text, "mem-bench needs wss_mb; mem-bench needs access_mops; "
					 "mem-bench has no parameter x");
	for (int i = 0; i < 1000; i++)
		fault(&faults, "fault %d", i);
	assert_int_equal(faults.n, 1003);
	assert_true(strlen(faults.text) < sizeof(faults.text));
}

/* JSON of a wrong shape is rejected. */
TEST(rejects_wrong_shapes)
{
	static const char *const shapes[] = {
		"[]",
		"{}",
		"{\"kind\": 1, \"name\": \"FlowStats\"}",
		"{\"kind\": \"nf\", \"name\": null}",
		"{\"kind\": \"nf\", \"name\": \"FlowStats\"}",
		"{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": []}",
		("{\"kind\": \"nf\", \"name\": \"FlowStats\", \"traffic\": {\"flows\": true, "
		 "\"packet_size\": 64}}"),
		"{\"kind\": \"nf\", \"name\": \"mem-bench\", \"traffic\": {}}",
		"{\"kind\": \"bench\", \"name\": \"FlowStats\"}",
		"{\"kind\": \"bench\", \"name\": \"mem-bench\", \"parameters\": 3}",
	};

	for (size_t i = 0; i < RTE_DIM(shapes); i++) {
		struct faults faults;

		parsed(shapes[i], &faults);
		assert_true(faults.n > 0);
	}
}
