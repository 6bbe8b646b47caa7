/* Responses to run requests, as JSON. */
#pragma once

#include <jansson.h>

#include "testbed/testbed.h"

json_t *response_error(const char *code, const char *message);

/* The measurement of co-located workloads; `counts` are events per unit of work. */
json_t *response_measured(const struct testbed *testbed, const struct co_location *co_location,
			  const struct measured *measured, const struct counts *counts);

/* The same, marked as best effort; the first one is also reported on stderr. */
json_t *response_best_effort(struct testbed *testbed, const struct co_location *co_location,
			     const struct measured *measured, const struct counts *counts);

/* The error of a run of `n` workloads that did not become accurate, with its figures. */
json_t *response_too_noisy(const struct testbed *testbed, const struct measured *measured,
			   unsigned int n);
