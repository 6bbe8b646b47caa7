/*
 * What a load does per unit of its work, whoever is beside it: a packet, an access, a request.
 *
 * The load runs alone in a program of its own, natively, to see which pages it refers to and which
 * hardware events it causes; where the machine shows none, once more under cachegrind, which
 * simulates this machine's first-level and last-level caches. Rates are left out: waiting is no
 * work.
 */
#ifndef NFS_TESTBED_COUNTS_H
#define NFS_TESTBED_COUNTS_H

#include <jansson.h>

#include "testbed/load.h"
#include "testbed/machine.h"
#include "testbed/options.h"

struct counts {
	double instructions;
	double l2_reads, l2_writes;         /* misses of the first level */
	double memory_reads, memory_writes; /* misses of the last level */
	double working_set_mb;
};

/* Counts by load, remembered here and in the user's cache. */
struct counting {
	const struct machine *machine;
	enum counter_source source; /* perf or cachegrind */
	const char *cores;          /* as the options tell them */
	unsigned int memory_mb;
	const volatile bool *stop;
	uint64_t until_ns; /* clock_ns() at which counting ends anyhow */
	uint64_t program;  /* a fingerprint: another program counts anew; 0: nothing is kept */
	json_t *known;
};

/*
 * Counting by the source that the options tell, or the best that is here. 0, or a negative errno
 * after printing what is missing.
 */
int counting_open(struct counting *counting, const struct machine *machine,
		  const struct options *options, const volatile bool *stop);
/* Once all libraries are loaded; 0, or a negative errno. */
int counting_start(struct counting *counting);
void counting_close(struct counting *counting);

/* The counts of a load; 0, or a negative errno after printing why there are none. */
int counts_get(struct counting *counting, const struct load *load, struct counts *counts);

/* Units that are counted: enough to be exact, few enough for a simulator. */
uint64_t counted_units(const struct load *load);

#endif
