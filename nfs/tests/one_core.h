/* EAL on one core, without devices: for tests, fuzzing and measurements. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

/* False after printing why EAL does not start. */
static inline bool start_on_one_core(const char *program, const char *memory_mb)
{
	char *arguments[] = {(char *)(uintptr_t)program,
			     "-l",
			     "0",
			     "--no-pci",
			     "--no-huge",
			     "-m",
			     (char *)(uintptr_t)memory_mb,
			     "--no-telemetry",
			     "--no-shconf",
			     "--log-level",
			     "lib.eal:error"};

	if (rte_eal_init(RTE_DIM(arguments), arguments) >= 0)
		return true;
	fprintf(stderr, "%s: cannot start EAL: %s\n", program, rte_strerror(rte_errno));
	return false;
}
