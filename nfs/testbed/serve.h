/* Answering requests. */
#ifndef NFS_TESTBED_SERVE_H
#define NFS_TESTBED_SERVE_H

#include <stdio.h>

#include "testbed/testbed.h"

/* Answer every line of `in` with a line on `out`, until `in` ends or the testbed is stopped. */
void serve(struct testbed *testbed, FILE *in, FILE *out);

#endif
