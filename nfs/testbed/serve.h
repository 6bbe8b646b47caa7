/* Serves requests. */
#pragma once

#include <stdio.h>

#include "testbed/testbed.h"

/*
 * Answer each line of `in` with a line on `out`, until `in` ends or the testbed is stopped. 0, or a
 * negative errno after printing why.
 */
int serve(struct testbed *testbed, int in, FILE *out);
