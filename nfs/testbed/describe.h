/* The testbed's answer to `describe`. */
#ifndef NFS_TESTBED_DESCRIBE_H
#define NFS_TESTBED_DESCRIBE_H

#include <jansson.h>

#include "testbed/testbed.h"

json_t *describe(const struct testbed *testbed);

/* Print the network functions that are omitted, and why. */
void print_omitted(const struct testbed *testbed);

#endif
