/* A program that runs one load alone, so that its events can be counted. */
#pragma once

#include <stdio.h>

#include "testbed/options.h"

/*
 * Fill the tables of the load given by the options, process its units, and print their number,
 * "units N". A forked child exits in between: cachegrind writes counts for both processes, and the
 * difference belongs to the units alone. With `count_pages`, "pages N" is the number of bytes in
 * pages that the units referenced. Returns an exit status.
 */
int counting_run(const struct options *options, FILE *out);
