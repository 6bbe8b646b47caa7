/*
 * Events per unit of work of a load (a packet, an access, a request), independent of its
 * neighbours.
 *
 * The load runs alone in a program of its own: natively, to see which pages it references and which
 * hardware events it causes; if the machine has no hardware events, again under cachegrind, which
 * simulates this machine's first-level and last-level caches. Rate limits are removed, because
 * waiting is no work.
 */
#pragma once

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

/* Counts by load, cached in memory and in the user's cache folder. */
struct counting {
	const struct machine *machine;
	enum counter_source source; /* perf or cachegrind */
	const char *cores;          /* the option's list */
	unsigned int memory_mb;
	const volatile bool *stop;
	uint64_t until_ns; /* clock_ns() at which counting ends */
	uint64_t program; /* fingerprint of the program; another program counts again; 0: nothing is
			     cached */
	json_t *cached;
};

/*
 * Open the source of counts that the options name, or the best available one. 0, or a negative
 * errno after printing what is missing.
 */
int counting_open(struct counting *counting, const struct machine *machine,
		  const struct options *options, const volatile bool *stop);
/* Call it after all libraries are loaded. 0, or a negative errno. */
int counting_start(struct counting *counting);
void counting_close(struct counting *counting);

/* The counts of a load. 0, or a negative errno after printing why there are none. */
int counts_get(struct counting *counting, const struct load *load, struct counts *counts);

/* False if the load, as text, has not been counted yet. */
bool counts_load(struct counting *counting, const char *load, struct counts *counts);
/* If no file can be written, the counts are kept in memory only. */
void counts_save(struct counting *counting, const char *load, const struct counts *counts);
