/* The testbed's answer to `describe`. */
#pragma once

#include <jansson.h>

#include "testbed/testbed.h"

json_t *describe(const struct testbed *testbed);

/* Print the network functions that are omitted, and why. */
void print_omitted(const struct testbed *testbed);
