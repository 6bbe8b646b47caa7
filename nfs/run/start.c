#include "run/start.h"

#include <sched.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "accelerators/accelerator.h"

/* One thread on any processor that the process may use: "0@(0,1)". */
static void list_cores(char *list, size_t size)
{
	size_t n = (size_t)snprintf(list, size, "0@(");
	const char *before = "";
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE && n < size; core++) {
		if (!CPU_ISSET(core, &allowed))
			continue;
		n += (size_t)snprintf(list + n, size - n, "%s%d", before, core);
		before = ",";
	}
	if (n < size)
		snprintf(list + n, size - n, ")");
}

int start_eal(const char *program, unsigned int memory_mb)
{
	static char name[32], memory[16];
	static char lcores[8 * CPU_SETSIZE];
	char *arguments[] = {name,
			     "--lcores",
			     lcores,
			     "--no-pci",
			     "--no-huge",
			     "-m",
			     memory,
			     "--no-telemetry",
			     "--no-shconf",
			     "--log-level",
			     "*:error"};

	snprintf(name, sizeof(name), "%s", program);
	snprintf(memory, sizeof(memory), "%u", memory_mb);
	list_cores(lcores, sizeof(lcores));
	if (rte_eal_init(RTE_DIM(arguments), arguments) >= 0)
		return 0;
	fprintf(stderr, "%s: cannot start EAL: %s\n", program, rte_strerror(rte_errno));
	return -1;
}

bool start_accelerators(const struct chain_spec *spec, struct accelerator **accelerators)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < spec->n_functions; i++)
		used |= spec->functions[i].kind->accelerators;
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!(used & NF_USES(kind)))
			continue;
		accelerators[kind] = accelerator_create((enum accelerator_kind)kind);
		if (!accelerators[kind])
			return false;
	}
	return true;
}
