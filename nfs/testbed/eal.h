/* The start of DPDK's environment abstraction layer (EAL). */
#pragma once

#include "testbed/machine.h"
#include "testbed/ports.h"

#define EAL_MOST_ARGUMENTS 16

struct eal_config {
	unsigned int memory_mb;
	bool realtime;
	bool small_pages;   /* even if hugepages are free */
	struct ports ports; /* of a card; without any, no PCI device is used */
};

/* The arguments for rte_eal_init, which keeps pointers to them. */
struct eal_arguments {
	int n;
	char *words[EAL_MOST_ARGUMENTS];
	char lcores[MACHINE_MOST_CORES * 16], memory[16];
};

/* Make the arguments; `huge_mb` is the memory in free hugepages. */
void eal_arguments(struct eal_arguments *arguments, const struct machine *machine,
		   const struct eal_config *config, unsigned int huge_mb);

/* Start EAL with an lcore for each core of the machine. 0, or a negative errno after printing why.
 */
int eal_start(const struct machine *machine, const struct eal_config *config);
