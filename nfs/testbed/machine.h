/* The machine at hand: its processor, its caches, and which cores share what. */
#ifndef NFS_TESTBED_MACHINE_H
#define NFS_TESTBED_MACHINE_H

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
	char model[64]; /* of the processor, in small letters and hyphens */
	struct cache l1_data, l1_instructions, last_level;
	int last_level_index; /* in sysfs */
	unsigned int n_cores;
	int cores[MACHINE_MOST_CORES]; /* that workloads may run on */
};

/*
 * Look at the machine; `cores` is a list as in "0,2-5", or NULL for all that this process may run
 * on. 0, or a negative errno after printing why.
 */
int machine_read(struct machine *machine, const char *cores);

/* The cores that share the last-level cache with this one, which is among them. */
cpu_set_t machine_cache_neighbours(const struct machine *machine, int core);

/* Whether two cores are threads of one: they share execution units. */
bool machine_siblings(int one, int other);

#endif
