/* Requests of the testbed protocol. */
#ifndef NFS_TESTBED_REQUEST_H
#define NFS_TESTBED_REQUEST_H

#include <jansson.h>

#include "testbed/faults.h"
#include "testbed/load.h"

/* The loads that `workloads` of a run request asks for; what is wrong is in `faults`. */
void request_co_location(const json_t *workloads, struct co_location *co_location,
			 struct faults *faults);

/* One of them. */
void request_load(const json_t *workload, struct load *load, struct faults *faults);

/* A load as `request_load` reads it; what leaves its rate unlimited when `flat_out`. */
json_t *load_json(const struct load *load, bool unlimited_rate);

#endif
