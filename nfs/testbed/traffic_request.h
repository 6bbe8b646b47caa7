/* Traffic of network functions and chains in requests. */
#ifndef NFS_TESTBED_TRAFFIC_REQUEST_H
#define NFS_TESTBED_TRAFFIC_REQUEST_H

#include <jansson.h>

#include "testbed/faults.h"
#include "testbed/load.h"

/* Read the traffic of a workload. False, after adding why, if there is none. */
bool request_traffic(const json_t *workload, struct load *load, struct faults *faults);

json_t *traffic_json(const struct load *load);

#endif
