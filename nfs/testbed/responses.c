#include "testbed/responses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

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

json_t *response_error(const char *code, const char *message)
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

json_t *response_too_noisy(const struct testbed *testbed, const struct measured *measured,
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

/* Counts per unit times units per second; cycles are those of the time stamp counter. */
static json_t *counters_json(const struct counts *counts, double per_s)
{
	const double instructions = counts->instructions * per_s;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "ipc",
			 instructions / clock_tsc_hz(), "irt", instructions, "l2crd",
			 counts->l2_reads * per_s, "l2cwr", counts->l2_writes * per_s, "memrd",
			 counts->memory_reads * per_s, "memwr", counts->memory_writes * per_s,
			 "wss", counts->working_set_mb);
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

static json_t *stages_json(const struct chain_load *chain, const struct chain_result *result,
			   double per_s)
{
	json_t *stages = json_array();

	for (unsigned int i = 0; i < chain->spec.n_functions; i++)
		json_array_append_new(stages,
				      json_pack("{s:f, s:f}", "throughput_kpps",
						chain_result_leaving(result, i) * per_s / 1e3,
						"dropped_pct",
						chain_result_dropped_pct(result, i)));
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
		      const struct chain_result *result, double per_s)
{
	const double entered = (double)result->stages[0].entered;

	json_object_set_new(answer, "stages", stages_json(chain, result, per_s));
	if (result->latencies.n > 0)
		json_object_set_new(answer, "latency_us", latency_json(&result->latencies));
	if (result->lost > 0)
		json_object_set_new(answer, "lost_pct",
				    json_real(100 * (double)result->lost / entered));
}

static json_t *workload_json(const struct load *load, const struct measured *measured,
			     const struct counts *counts, unsigned int at)
{
	const double per_s = measured->per_s[at];
	json_t *answer = json_pack("{s:f, s:o, s:o}", "throughput_kpps", per_s / 1e3, "counters",
				   counters_json(&counts[at], per_s), "standard_error_pct",
				   error_json(measured->standard_error_pct[at]));

	if (load->chain)
		add_chain(answer, load->chain, &measured->chains[at], per_s);
	return answer;
}

json_t *response_measured(const struct testbed *testbed, const struct co_location *co_location,
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

json_t *response_best_effort(struct testbed *testbed, const struct co_location *co_location,
			     const struct measured *measured, const struct counts *counts)
{
	json_t *answer = response_measured(testbed, co_location, measured, counts);

	report_best_effort(testbed, measured, co_location->n);
	json_object_set_new(answer, "best_effort", json_true());
	json_object_set_new(answer, "disturbed_pct", json_real(measured_disturbed_pct(measured)));
	return answer;
}
