/* Traffic of network functions and chains in requests. */
#pragma once

#include <jansson.h>

#include "testbed/faults.h"
#include "testbed/load.h"

/* Read the traffic of a workload. False, after adding why, if there is none. */
bool request_traffic(const json_t *workload, struct load *load, struct faults *faults);

json_t *traffic_json(const struct load *load);
