/* The machine: its processor, its caches, and which cores share them. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_MOST_CORES 64

struct cache {
	uint64_t bytes;
	uint32_t ways;
	uint32_t line;
};

struct machine {
	char model[64]; /* of the processor, lower case with hyphens */
	struct cache l1_data, l1_instructions, last_level;
	int last_level_index; /* in sysfs */
	unsigned int n_cores;
	int cores[MACHINE_MOST_CORES]; /* for workloads */
};

/*
 * Read the machine's properties; `cores` is a list such as "0,2-5", or NULL for all cores that this
 * process may use. 0, or a negative errno after printing why.
 */
int machine_read(struct machine *machine, const char *cores);

/* The cores that share the last-level cache with `core`, including itself. */
cpu_set_t machine_cache_neighbours(const struct machine *machine, int core);

/* Whether two cores are hardware threads of one core. */
bool machine_siblings(int one, int other);
