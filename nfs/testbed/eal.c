#include "testbed/eal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_errno.h>

#define HUGE_MB_OF_A_PAGE 2

/* Free hugepages of 2 MB, in MB. */
static unsigned int free_huge_mb(void)
{
	char line[128];
	unsigned int pages = 0;
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");

	if (file && fgets(line, sizeof(line), file))
		pages = (unsigned int)strtoul(line, NULL, 10);
	if (file)
		fclose(file);
	return pages * HUGE_MB_OF_A_PAGE;
}

/* "0@(0,1),1@0,2@1": lcore 0 may run on all cores, the others are pinned to one each. */
static void list_lcores(const struct machine *machine, char *list, size_t size)
{
	size_t n = (size_t)snprintf(list, size, "0@(");

	for (unsigned int i = 0; i < machine->n_cores; i++)
		n += (size_t)snprintf(list + n, size - n, "%s%d", i ? "," : "", machine->cores[i]);
	n += (size_t)snprintf(list + n, size - n, ")");
	for (unsigned int i = 0; i < machine->n_cores; i++)
		n += (size_t)snprintf(list + n, size - n, ",%u@%d", i + 1, machine->cores[i]);
}

static void add(struct eal_arguments *arguments, const char *word)
{
	arguments->words[arguments->n++] = (char *)(uintptr_t)word;
}

void eal_arguments(struct eal_arguments *arguments, const struct machine *machine,
		   const struct eal_config *config, unsigned int huge_mb)
{
	static const char *const common[] = {"--no-shconf", "--no-telemetry", "--log-level",
					     "lib.eal:error"};

	arguments->n = 0;
	list_lcores(machine, arguments->lcores, sizeof(arguments->lcores));
	snprintf(arguments->memory, sizeof(arguments->memory), "%u", config->memory_mb);
	add(arguments, "testbed");
	add(arguments, "--lcores");
	add(arguments, arguments->lcores);
	add(arguments, "-m");
	add(arguments, arguments->memory);
	if (config->ports.n == 0)
		add(arguments, "--no-pci");
	for (unsigned int i = 0; i < config->ports.n; i++) {
		add(arguments, "-a");
		add(arguments, config->ports.given[i]);
	}
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		add(arguments, common[i]);
	add(arguments, !config->small_pages && huge_mb >= config->memory_mb ? "--in-memory"
									     : "--no-huge");
}

int eal_start(const struct machine *machine, const struct eal_config *config)
{
	static struct eal_arguments arguments;

	eal_arguments(&arguments, machine, config, free_huge_mb());
	if (rte_eal_init(arguments.n, arguments.words) < 0) {
		fprintf(stderr, "testbed: cannot start EAL: %s\n", rte_strerror(rte_errno));
		return -EIO;
	}
	return ports_start(&config->ports);
}
