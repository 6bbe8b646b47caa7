#include "tests/requests.h"

#define TRAFFIC "\"traffic\": {\"flows\": 5000, \"packet_size\": 100}"
#define SMALL_ACL "{\"name\": \"ACL\", \"parameters\": {\"filters\": 64}}"
#define TWO "\"stages\": [" SMALL_ACL ", {\"name\": \"NAT\"}]"

#define HALF "\"shares\": [0.5, 1], \"rate_kpps\": 7"
#define CHAIN(fields) "{\"kind\": \"chain\", " fields ", " TRAFFIC "}"

static double setting(const struct chain_function *function, const char *name)
{
	return value_of(function->settings, function->n_settings, name);
}

/* Stages, cores, shares and rate are read; tables get twice the flows, as those of one function. */
TEST(reads_a_chain)
{
	struct faults faults;
	struct load load = parsed(CHAIN(TWO ", \"cores\": [[1], [0]], " HALF), &faults);

	assert_int_equal(faults.n, 0);
	assert_non_null(load.chain);
	assert_string_equal(load_name(&load), "ACL -> NAT");
	assert_int_equal(load_cores(&load), 2);
	assert_int_equal(load.chain->spec.functions[0].core, 1);
	assert_int_equal(load.chain->spec.functions[1].core, 0);
	assert_float_equal(setting(&load.chain->spec.functions[0], "filters"), 64, 0);
	assert_float_equal(setting(&load.chain->spec.functions[1], "sessions"), 10000, 0);
	assert_float_equal(load.chain->shares[0], 0.5, 0);
	assert_float_equal(load_limit(&load), 7000, 0);
	assert_int_equal(load_fill(&load, 0), 5000);
	assert_int_equal(chain_spec_check(&load.chain->spec), 0);
	free(load.chain);
}

/* Events are counted on one core, with all of its time and as fast as it goes. */
TEST(counts_on_one_core)
{
	struct faults faults;
	struct load load = parsed(CHAIN(TWO ", \"cores\": [[0], [1]], " HALF), &faults);
	json_t *json = load_json(&load);
	char *text = json_dumps(json, 0);
	struct load again = parsed(text, &faults);

	assert_int_equal(faults.n, 0);
	assert_int_equal(load_cores(&again), 1);
	assert_float_equal(setting(&again.chain->spec.functions[0], "filters"), 64, 0);
	assert_float_equal(setting(&again.chain->spec.functions[1], "sessions"), 10000, 0);
	assert_float_equal(again.chain->shares[0], 1, 0);
	assert_true(isinf(load_limit(&again)));
	assert_int_equal(again.traffic.flows, 5000);
	free(text);
	json_decref(json);
	free(load.chain);
	free(again.chain);
}

static void expect_fault(const char *text, const char *expected)
{
	struct faults faults;
	struct load load = parsed(text, &faults);

	if (!strstr(faults.text, expected))
		fail_msg("%s: \"%s\" is not in \"%s\"", text, expected, faults.text);
	free(load.chain);
}

#define CORES "\"cores\": [[0, 1]]"

/* Each fault is named. */
TEST(names_faults)
{
	expect_fault(CHAIN(CORES), "a chain needs stages, an array of 1 to 32");
	expect_fault(CHAIN("\"stages\": [{}], \"cores\": [[0]]"),
		     "stage 0 of the chain needs a name");
	expect_fault(CHAIN("\"stages\": [{\"name\": \"Nil\"}], \"cores\": [[0]]"),
		     "NF Nil is not known");
	expect_fault(CHAIN(TWO), "a chain needs cores");
	expect_fault(CHAIN(TWO ", \"cores\": [[0]]"), "cores: stage 1 is on no core");
	expect_fault(CHAIN(TWO ", \"cores\": [[0, 1], [1]]"), "cores: stage 1 is on two cores");
	expect_fault(CHAIN(TWO ", \"cores\": [[0, 1, 2]]"), "cores: 0: there is no such stage");
	expect_fault(CHAIN(TWO ", \"cores\": [[0, 1], []]"),
		     "cores: 1: an array of stages is needed");
	expect_fault(CHAIN(TWO ", " CORES ", \"shares\": [1, 1]"),
		     "shares: one is needed for each of 1 cores");
	expect_fault(CHAIN(TWO ", " CORES ", \"shares\": [0]"),
		     "shares: 0: it is not above 0 and at most 1");
	expect_fault(CHAIN(TWO ", " CORES ", \"rate_kpps\": -1"), "rate_kpps -1 is outside");
	expect_fault(CHAIN("\"cores\": [[0]], \"stages\": "
			   "[{\"name\": \"ACL\", \"parameters\": {\"x\": 1}}]"),
		     "ACL 0 has no parameter x");
	expect_fault("{\"kind\": \"chain\", " TWO ", " CORES "}", "ACL -> NAT needs traffic");
	expect_fault("{\"kind\": \"chain\", \"stages\": [{\"name\": \"Encrypt\"}], "
		     "\"cores\": [[0]], \"traffic\": {\"capture\": \"/proc/self/exe\"}}",
		     "Encrypt: it changes payloads");
}

/* A chain with several faults names all of them. */
TEST(names_all_faults)
{
	struct faults faults;

	parsed(CHAIN("\"stages\": [{\"name\": \"Nil\"}, {\"name\": \"Nix\"}], \"cores\": [[0]], "
		     "\"shares\": [7], \"rate_kpps\": -1"),
	       &faults);
	assert_int_equal(faults.n, 5);
}
