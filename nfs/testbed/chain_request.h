/* Chains in requests of the testbed protocol. */
#pragma once

#include <jansson.h>

#include "testbed/faults.h"
#include "testbed/load.h"

/* Read a workload of kind "chain" into `load->chain`, which the caller frees. */
void request_chain(const json_t *workload, struct load *load, struct faults *faults);

/*
 * The JSON of a chain whose events are counted: on one core, with all of its time, and as fast as
 * it goes. Placement and rate do not change what a packet costs in events.
 */
json_t *chain_json(const struct load *load);
