#include "testbed/serve.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "testbed/describe.h"
#include "testbed/lines.h"
#include "testbed/request.h"

/* Responses to run requests, as JSON. */

/* Length of the text without an incomplete UTF-8 character at its end. */
static size_t complete_characters(const char *text)
{
	const size_t n = strlen(text);
	size_t after = 0, wanted;
	unsigned char first;

	while (after < n && after < 3 && ((unsigned char)text[n - 1 - after] & 0xc0) == 0x80)
		after++;
	if (after == n)
		return n;
	first = (unsigned char)text[n - 1 - after];
	wanted = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
	return after < wanted ? n - 1 - after : n;
}

static json_t *response_error(const char *code, const char *message)
{
	return json_pack("{s:b, s:{s:s, s:s%}}", "ok", 0, "error", "code", code, "message", message,
			 complete_characters(message));
}

static json_t *windows_json(const struct measured *measured)
{
	json_t *rejected = json_object();

	for (int i = UNDISTURBED + 1; i < DISTURBANCES; i++)
		if (measured->windows[i] > 0)
			json_object_set_new(rejected, disturbance_names[i],
					    json_integer((json_int_t)measured->windows[i]));
	return json_pack("{s:i, s:i, s:o}", "kept", (int)measured->windows[UNDISTURBED], "rounds",
			 (int)measured->rounds, "rejected", rejected);
}

/* null before the second round, when the error is unknown. */
static json_t *error_json(double pct)
{
	return isfinite(pct) ? json_real(pct) : json_null();
}

/* The largest error of all workloads; infinite if one is unknown. */
static double largest_error(const struct measured *measured, unsigned int n)
{
	double largest = 0;

	for (unsigned int i = 0; i < n; i++)
		largest = isfinite(measured->standard_error_pct[i])
				  ? fmax(largest, measured->standard_error_pct[i])
				  : INFINITY;
	return largest;
}

/* The error of a run of `n` workloads that did not become accurate, with its figures. */
static json_t *response_too_noisy(const struct testbed *testbed, const struct measured *measured,
				  unsigned int n)
{
	char message[512], reached[64] = "the standard error is unknown", reasons[128];
	char hint[160] = "stop other work on the machine";
	const double largest = largest_error(measured, n);
	json_t *answer, *error, *errors = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(errors, error_json(measured->standard_error_pct[i]));
	measured_reasons(measured, reasons, sizeof(reasons));
	if (!testbed->options.realtime)
		snprintf(hint, sizeof(hint),
			 "stop other work on the machine%s, or keep it off these cores: --realtime",
			 testbed->limits.best_effort
				 ? ""
				 : ", or accept a larger error: --best-effort");
	if (clock_ns() >= testbed->limits.until_ns)
		snprintf(hint, sizeof(hint), "the limit is %u s (--timeout)",
			 testbed->options.timeout_s);
	if (isfinite(largest))
		snprintf(reached, sizeof(reached), "the standard error is %.2f %%", largest);
	snprintf(message, sizeof(message),
		 "%s after %u rounds in %.0f s, %.2f %% is required: of %u windows, %s were "
		 "disturbed; %s",
		 reached, measured->rounds, measured->elapsed_s,
		 testbed->options.limits.standard_error_pct,
		 measured->windows[UNDISTURBED] + measured_rejected(measured), reasons, hint);
	answer = response_error("too-noisy", message);
	error = json_object_get(answer, "error");
	json_object_set_new(error, "windows", windows_json(measured));
	json_object_set_new(error, "standard_error_pct", errors);
	return answer;
}

/* Counts per unit times units per second; cycles are those of the time stamp counter of a core. */
static json_t *counters_json(const struct counts *counts, double per_s, unsigned int copies)
{
	const double instructions = counts->instructions * per_s;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "ipc",
			 instructions / clock_tsc_hz() / copies, "irt", instructions, "l2crd",
			 counts->l2_reads * per_s, "l2cwr", counts->l2_writes * per_s, "memrd",
			 counts->memory_reads * per_s, "memwr", counts->memory_writes * per_s,
			 "wss", copies * counts->working_set_mb);
}

static const char *counters_from(const struct testbed *testbed)
{
	return counter_source_names[testbed->options.counters == COUNTERS_NONE
					    ? COUNTERS_NONE
					    : testbed->counting.source];
}

/* Report the first one, for clients that do not read the mark. */
static void report_best_effort(struct testbed *testbed, const struct measured *measured,
			       unsigned int n)
{
	if (testbed->best_efforts++ > 0)
		return;
	fprintf(stderr,
		"testbed: best effort: %.0f %% of the windows were disturbed, the standard error "
		"is %.1f %%; further answers like this are marked, and counted at the end\n",
		measured_disturbed_pct(measured), largest_error(measured, n));
}

static json_t *stages_json(const struct chain_load *chain, const struct load_result *result,
			   double per_s)
{
	json_t *stages = json_array();

	for (unsigned int i = 0; i < chain->spec.n_functions; i++)
		json_array_append_new(stages,
				      json_pack("{s:f, s:f}", "throughput_kpps",
						load_result_leaving(result, i) * per_s / 1e3,
						"dropped_pct", load_result_dropped_pct(result, i)));
	return stages;
}

static json_t *latency_json(const struct latencies *latencies)
{
	const double us = 1e6 * (1 << LATENCY_SHIFT) / clock_tsc_hz();

	return json_pack("{s:f, s:f, s:f, s:f}", "mean", us * latencies_mean(latencies), "p50",
			 us * latencies_quantile(latencies, 0.5), "p99",
			 us * latencies_quantile(latencies, 0.99), "max",
			 us * (double)latencies->most);
}

static void add_chain(json_t *answer, const struct chain_load *chain,
		      const struct load_result *result, double per_s)
{
	const double entered = (double)result->stages[0].entered;

	json_object_set_new(answer, "stages", stages_json(chain, result, per_s));
	if (result->lost > 0)
		json_object_set_new(answer, "lost_pct",
				    json_real(100 * (double)result->lost / entered));
}

static json_t *workload_json(const struct load *load, const struct measured *measured,
			     const struct counts *counts, unsigned int at)
{
	const double per_s = measured->per_s[at];
	json_t *answer =
		json_pack("{s:f, s:o, s:o}", "throughput_kpps", per_s / 1e3, "counters",
			  counters_json(&counts[at], per_s, RTE_MAX(load->cores, 1u)),
			  "standard_error_pct", error_json(measured->standard_error_pct[at]));

	if (load->chain)
		add_chain(answer, load->chain, &measured->results[at], per_s);
	if (measured->results[at].latencies.n > 0)
		json_object_set_new(answer, "latency_us",
				    latency_json(&measured->results[at].latencies));
	return answer;
}

/* The measurement of co-located workloads; `counts` are events per unit of work. */
static json_t *response_measured(const struct testbed *testbed,
				 const struct co_location *co_location,
				 const struct measured *measured, const struct counts *counts)
{
	json_t *workloads = json_array();

	for (unsigned int i = 0; i < co_location->n; i++)
		json_array_append_new(workloads, workload_json(&co_location->loads[i], measured,
							       counts, i));
	return json_pack("{s:b, s:f, s:o, s:o, s:s}", "ok", 1, "elapsed_s", measured->elapsed_s,
			 "workloads", workloads, "windows", windows_json(measured), "counters_from",
			 counters_from(testbed));
}

/* The same, marked as best effort; the first one is also reported on stderr. */
static json_t *response_best_effort(struct testbed *testbed, const struct co_location *co_location,
				    const struct measured *measured, const struct counts *counts)
{
	json_t *answer = response_measured(testbed, co_location, measured, counts);

	report_best_effort(testbed, measured, co_location->n);
	json_object_set_new(answer, "best_effort", json_true());
	json_object_set_new(answer, "disturbed_pct", json_real(measured_disturbed_pct(measured)));
	return answer;
}

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

static void check_cores(const struct testbed *testbed, const struct load *load,
			struct faults *faults)
{
	json_t *counts;
	char *possible;

	if (load->cores == 0 || testbed_gives(testbed, load->cores))
		return;
	counts = describe_core_counts(testbed);
	possible = json_dumps(counts, 0);
	fault(faults, "%s cannot be given %u cores, possible: %s", load_name(load), load->cores,
	      possible ? possible : "1");
	free(possible);
	json_decref(counts);
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
		check_cores(testbed, &co_location->loads[i], faults);
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
