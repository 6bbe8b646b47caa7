#include "testbed/core_ticks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STOLEN, FIELDS };

static void parse(const char *line, struct core_ticks *cores)
{
	char *rest;
	const long core = strtol(line + 3, &rest, 10);
	uint64_t fields[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		fields[i] = strtoull(rest, &rest, 10);
	if (core < 0 || core >= CPU_SETSIZE)
		return;
	cores[core].busy = fields[USER] + fields[NICE] + fields[SYSTEM] + fields[IRQ] +
			   fields[SOFTIRQ] + fields[STOLEN];
	cores[core].stolen = fields[STOLEN];
}

/* The lines of the cores come first; the long rest is not read. */
int core_ticks_read(const char *path, struct core_ticks cores[CPU_SETSIZE])
{
	FILE *file = fopen(path, "re");
	char line[512];
	int found = 0;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0) {
		if (!isdigit((unsigned char)line[3])) /* the sum of all cores */
			continue;
		parse(line, cores);
		found++;
	}
	fclose(file);
	return found > 0 ? 0 : -ENODATA;
}
