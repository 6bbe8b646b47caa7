/* What the testbed says of itself. */
#ifndef NFS_TESTBED_DESCRIBE_H
#define NFS_TESTBED_DESCRIBE_H

#include <jansson.h>

#include "testbed/testbed.h"

json_t *describe(const struct testbed *testbed);

/* Tell on stderr which network functions are left out, and why. */
void describe_left_out(const struct testbed *testbed);

#endif
