#include "testbed/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "testbed/describe.h"
#include "testbed/lines.h"
#include "testbed/request.h"
#include "testbed/responses.h"

#define LAST_NS 1000000000ull /* reserve to end the run and send the response */

static int count_co_location(struct testbed *testbed, const struct co_location *co_location,
			     struct counts *counts)
{
	int result = 0;

	control_thread_avoid(&testbed->workers, 0);
	for (unsigned int i = 0;
	     i < co_location->n && result == 0 && testbed->options.counters != COUNTERS_NONE; i++)
		result = counts_get(&testbed->counting, &co_location->loads[i], &counts[i]);
	return result;
}

static void check_co_location(const struct testbed *testbed, const struct co_location *co_location,
			      struct faults *faults)
{
	const unsigned int needed = co_run_cores(co_location, &testbed->engines);

	for (unsigned int i = 0; i < co_location->n; i++) {
		char missing[128];

		if (co_location->loads[i].chain && testbed->options.share_client_core)
			fault(faults, "%s: a chain takes cores as a whole, it cannot share one",
			      load_name(&co_location->loads[i]));

		testbed_missing(testbed, load_accelerators(&co_location->loads[i]), missing,
				sizeof(missing));
		if (missing[0])
			fault(faults, "%s: %s", load_name(&co_location->loads[i]), missing);
	}
	if (testbed->options.share_client_core && co_location->n > MOST_SHARING)
		fault(faults, "%u workloads cannot share a core; at most %d", co_location->n,
		      MOST_SHARING);
	if (needed > testbed->machine.n_cores)
		fault(faults,
		      "the run needs %u cores, including accelerator engines; this machine has %u",
		      needed, testbed->machine.n_cores);
}

/* A request may ask for a best effort, or refuse one; else the option counts. */
static bool requested_best_effort(const struct testbed *testbed, const json_t *request,
				  struct faults *faults)
{
	const json_t *requested = json_object_get(request, "best_effort");

	if (requested && !json_is_boolean(requested))
		fault(faults, "best_effort is not true or false");
	return requested ? json_is_true(requested) : testbed->options.limits.best_effort;
}

static json_t *run_co_location(struct testbed *testbed, const struct co_location *co_location)
{
	struct measured measured;
	struct counts counts[MOST_LOADS] = {0};

	if (count_co_location(testbed, co_location, counts) < 0)
		return *testbed->stop
			       ? NULL
			       : response_error("failed",
						"the counters of a workload could not be measured; "
						"see stderr");
	testbed_check_null(testbed);
	testbed->runs++;
	switch (measure(&measured, co_location, &testbed->workers, &testbed->engines,
			&testbed->limits, testbed->stop)) {
	case MEASURED:
		return response_measured(testbed, co_location, &measured, counts);
	case BEST_EFFORT:
		return response_best_effort(testbed, co_location, &measured, counts);
	case TOO_NOISY:
		return response_too_noisy(testbed, &measured, co_location->n);
	case TOO_SLOW:
		return response_error("too-slow", "tables were not filled within the time limit "
						  "(--timeout); see stderr");
	case INTERRUPTED:
		return NULL;
	default:
		return response_error("failed", "a workload could not be created; see stderr");
	}
}

static json_t *run(struct testbed *testbed, const json_t *request)
{
	struct co_location co_location;
	struct faults faults = {0};
	json_t *response;

	testbed->limits.best_effort = requested_best_effort(testbed, request, &faults);
	request_co_location(json_object_get(request, "workloads"), &co_location, &faults);
	if (faults.n == 0)
		check_co_location(testbed, &co_location, &faults);
	response = faults.n > 0 ? response_error("bad-request", faults.text)
				: run_co_location(testbed, &co_location);
	co_location_release(&co_location);
	return response;
}

static json_t *answer(struct testbed *testbed, const json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));

	testbed->limits.until_ns =
		clock_ns() + testbed->options.timeout_s * 1000000000ull - LAST_NS;
	testbed->counting.until_ns = testbed->limits.until_ns;
	if (op && strcmp(op, "describe") == 0) {
		testbed_check_null(testbed);
		return json_pack("{s:b, s:o}", "ok", 1, "testbed", describe(testbed));
	}
	if (op && strcmp(op, "run") == 0)
		return run(testbed, request);
	return response_error("bad-request", "unknown op; use describe or run");
}

static json_t *invalid_request(const char *why)
{
	char message[256];
	json_t *response;

	snprintf(message, sizeof(message), "not a JSON object: %s", why);
	response = response_error("bad-request", message);
	json_object_set_new(response, "id", json_null());
	return response;
}

/* NULL if the testbed was stopped. */
static json_t *respond_to_line(struct testbed *testbed, const char *line, size_t length)
{
	json_error_t error;
	json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error), *id, *response;

	if (!json_is_object(request)) {
		response = invalid_request(request ? "another JSON value" : error.text);
		json_decref(request);
		return response;
	}
	id = json_object_get(request, "id");
	response = answer(testbed, request);
	if (!response && !*testbed->stop)
		response = response_error("failed", "the response cannot be written as JSON");
	if (response)
		json_object_set(response, "id", id ? id : json_null());
	json_decref(request);
	return response;
}

static bool blank(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr(" \t\r", line[i]) || line[i] == '\0')
			return false;
	return true;
}

static int write_response(json_t *response, FILE *out)
{
	const bool written = json_dumpf(response, out, JSON_COMPACT) == 0 &&
			     fputc('\n', out) != EOF && fflush(out) == 0;

	json_decref(response);
	if (written)
		return 0;
	fprintf(stderr, "testbed: cannot write a response: %s\n", strerror(errno));
	return -EPIPE;
}

int serve(struct testbed *testbed, int in, FILE *out)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	int result = lines ? 0 : -ENOMEM;
	enum line kind;
	const char *line;
	size_t length;

	if (lines)
		lines->file = in;
	while (result == 0 && !*testbed->stop &&
	       (kind = lines_next(lines, testbed->stop, &line, &length)) != LINE_NO_MORE) {
		json_t *response;

		if (kind == LINE_READ && blank(line, length))
			continue;
		response = kind == LINE_READ ? respond_to_line(testbed, line, length)
					     : invalid_request("the line is too long");
		if (!response)
			break;
		result = write_response(response, out);
	}
	free(lines);
	if (testbed->limits.shared_machine)
		fprintf(stderr, "testbed: --fastest-probe %.0f\n", windows_fastest());
	if (testbed->best_efforts > 1)
		fprintf(stderr, "testbed: %u of %u runs were best effort\n", testbed->best_efforts,
			testbed->runs);
	return result;
}
