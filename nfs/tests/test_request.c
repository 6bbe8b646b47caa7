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
	json_t *json = load_json(load, true);
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

/* A load written as JSON is read as the same load; with an unlimited rate, a bench has rate 0. */
TEST(loads_survive_json)
{
	struct faults faults;
	struct load load = parsed("{\"kind\": \"bench\", \"name\": \"mem-bench\", \"parameters\": "
				  "{\"wss_mb\": 2, \"access_mops\": 30, \"pattern\": 1}}",
				  &faults);
	json_t *same = load_json(&load, false), *unlimited_rate = load_json(&load, true);
	char *text = json_dumps(same, 0);
	struct load again = parsed(text, &faults);

	assert_int_equal(faults.n, 0);
	assert_float_equal(setting(&again, "wss_mb"), 2, 0);
	assert_float_equal(setting(&again, "access_mops"), 30, 0);
	assert_float_equal(setting(&again, "pattern"), 1, 0);
	assert_float_equal(json_number_value(json_object_get(
				   json_object_get(unlimited_rate, "parameters"), "access_mops")),
			   0, 0);
	free(text);
	json_decref(same);
	json_decref(unlimited_rate);
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
