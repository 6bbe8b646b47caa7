/* The testbed's answer to `describe`. */
#pragma once

#include <jansson.h>

#include "testbed/testbed.h"

json_t *describe(const struct testbed *testbed);
/* The numbers of cores that a function can be given. */
json_t *describe_core_counts(const struct testbed *testbed);

/* Print the network functions that are omitted, and why. */
void print_omitted(const struct testbed *testbed);
