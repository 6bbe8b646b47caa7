/* A block list of domains and URLs like public ones, generated from a seed. */
#pragma once

#include <stdint.h>

#define URLS_LONGEST 128

/*
 * Generate the next entry: three of five are domains, others URLs with a path of up to three
 * segments. Entries may repeat.
 */
void urls_next(uint64_t *random, char url[URLS_LONGEST]);
