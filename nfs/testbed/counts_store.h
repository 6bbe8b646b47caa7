/* Stores counts of this program, in memory and in the user's cache folder. */
#pragma once

#include "testbed/counts.h"

/* False if the load, as text, has not been counted yet. */
bool counts_load(struct counting *counting, const char *load, struct counts *counts);
/* If no file can be written, the counts are kept in memory only. */
void counts_save(struct counting *counting, const char *load, const struct counts *counts);

/* Remove temporary files of processes that were killed while they wrote. */
void counts_remove_stale(void);
