/* Reads requests of the testbed protocol. */
#pragma once

#include <jansson.h>

#include "testbed/faults.h"
#include "testbed/load.h"

/*
 * Parse `workloads` of a run request; errors are added to `faults`. The caller ends with
 * co_location_release().
 */
void request_co_location(const json_t *workloads, struct co_location *co_location,
			 struct faults *faults);

/* Parse one workload; the caller frees its chain, if it is one, also after faults. */
void request_load(const json_t *workload, struct load *load, struct faults *faults);

/*
 * The JSON, as `request_load` reads it, of a load whose events are counted: of one copy, as fast as
 * it goes. See chain_json() for chains.
 */
json_t *load_json(const struct load *load);
