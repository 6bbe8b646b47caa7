/* A program that runs one load alone, for others to count what it does. */
#ifndef NFS_TESTBED_COUNTING_RUN_H
#define NFS_TESTBED_COUNTING_RUN_H

#include <stdio.h>

#include "testbed/options.h"

/*
 * Fill the tables of the load that the options tell, then do its units and print how many they
 * were, "units N". In between, a process that is forked ends: cachegrind writes for each of both
 * what it has done, and the difference is the units alone. With `count_pages`, "pages N" tells the
 * bytes of the pages that the units referred to. An exit status.
 */
int counting_run(const struct options *options, FILE *out);

#endif
