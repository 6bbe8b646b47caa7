/* Counts that were made before, in this process or another one of the same program. */
#ifndef NFS_TESTBED_COUNTS_STORE_H
#define NFS_TESTBED_COUNTS_STORE_H

#include "testbed/counts.h"

/* False when the load, as text, has not been counted yet. */
bool counts_load(struct counting *counting, const char *load, struct counts *counts);
/* Where nothing can be written, it is only remembered here. */
void counts_save(struct counting *counting, const char *load, const struct counts *counts);

/* Take away what processes that were killed were about to write. */
void counts_remove_stale(void);

#endif
