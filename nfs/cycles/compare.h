/*
 * Cycles per packet of a network function beside its peers.
 *
 * Both take turns on the same traffic, a slice of some bursts each. A slice in which another
 * process took the core is an outlier among many, so medians are reported. Only processing is
 * timed, not packet generation.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cycles/measuring.h"

bool compare_knows(const char *function);

/* Print the names of functions that have peers. */
void compare_list(FILE *to);

/* Print the columns of the table. */
void compare_begin(void);

/* Print a row for each peer of a function, or of all if NULL, and each number of flows. */
bool compare_function(const char *function, const struct load *load, struct rte_mempool *spare);
