#include "testbed/machine.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSFS "/sys/devices/system/cpu/cpu"

/* The first line of a core's file in sysfs; empty if there is none. */
static void read_line(int core, const char *name, char *line, size_t size)
{
	char path[128];
	FILE *file;

	line[0] = '\0';
	snprintf(path, sizeof(path), SYSFS "%d/%s", core, name);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(line, (int)size, file))
		line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

/* Parse a list of cores such as "0,2-5"; false if it is invalid. */
static bool parse_list(const char *list, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (end == list)
			return false;
		if (*end == '-') {
			list = end + 1;
			last = strtol(list, &end, 10);
			if (end == list)
				return false;
		}
		if (first < 0 || last < first || last >= CPU_SETSIZE)
			return false;
		for (; first <= last; first++)
			CPU_SET((int)first, set);
		if (*end && *end != ',')
			return false;
		list = *end ? end + 1 : end;
	}
	return CPU_COUNT(set) > 0;
}

static void read_cache(struct machine *machine, int index)
{
	const int core = machine->cores[0];
	char name[64], type[32], line[256];
	struct cache cache;
	static const char *const attributes[] = {"size", "ways_of_associativity",
						 "coherency_line_size"};
	uint64_t found[3];
	long level;

	snprintf(name, sizeof(name), "cache/index%d/level", index);
	read_line(core, name, line, sizeof(line));
	level = strtol(line, NULL, 10);
	snprintf(name, sizeof(name), "cache/index%d/type", index);
	read_line(core, name, type, sizeof(type));
	for (int i = 0; i < 3; i++) {
		char *unit;

		snprintf(name, sizeof(name), "cache/index%d/%s", index, attributes[i]);
		read_line(core, name, line, sizeof(line));
		found[i] = strtoul(line, &unit, 10);
		found[i] *= *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
	}
	cache = (struct cache){found[0], (uint32_t)found[1], (uint32_t)found[2]};
	if (cache.bytes == 0 || cache.ways == 0 || cache.line == 0)
		return;
	if (level == 1 && strcmp(type, "Instruction") == 0)
		machine->l1_instructions = cache;
	else if (level == 1)
		machine->l1_data = cache;
	else {
		machine->last_level = cache; /* sysfs lists caches from the first level up */
		machine->last_level_index = index;
	}
}

/* "AMD EPYC 9654 96-Core Processor" becomes "amd-epyc-9654-96-core-processor". */
static void name_model(struct machine *machine)
{
	char line[512];
	FILE *file = fopen("/proc/cpuinfo", "r");
	const char *name = NULL;
	size_t n = 0;

	while (file && !name && fgets(line, sizeof(line), file))
		if (strncmp(line, "model name", 10) == 0)
			name = strchr(line, ':');
	if (file)
		fclose(file);
	for (; name && *name && n + 1 < sizeof(machine->model); name++) {
		if (isalnum((unsigned char)*name))
			machine->model[n++] = (char)tolower((unsigned char)*name);
		else if (n > 0 && machine->model[n - 1] != '-')
			machine->model[n++] = '-';
	}
	while (n > 0 && machine->model[n - 1] == '-')
		n--;
	machine->model[n] = '\0';
	if (n == 0)
		snprintf(machine->model, sizeof(machine->model), "unknown");
}

static int choose_cores(struct machine *machine, const char *list)
{
	cpu_set_t allowed, selected;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) {
		fprintf(stderr, "testbed: cannot read the CPU affinity: %s\n", strerror(errno));
		return -errno;
	}
	selected = allowed;
	if (list && !parse_list(list, &selected)) {
		fprintf(stderr, "testbed: --cores %s: not a list such as 0,2-5\n", list);
		return -EINVAL;
	}
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &selected))
			continue;
		if (!CPU_ISSET(core, &allowed)) {
			fprintf(stderr, "testbed: --cores %s: core %d is not available\n", list,
				core);
			return -EINVAL;
		}
		if (machine->n_cores < MACHINE_MOST_CORES)
			machine->cores[machine->n_cores++] = core;
	}
	return 0;
}

int machine_read(struct machine *machine, const char *cores)
{
	int result;

	memset(machine, 0, sizeof(*machine));
	result = choose_cores(machine, cores);
	if (result < 0)
		return result;
	name_model(machine);
	for (int index = 0; index < 8; index++)
		read_cache(machine, index);
	if (machine->last_level.bytes == 0 || machine->l1_data.bytes == 0) {
		fprintf(stderr, "testbed: sysfs does not describe the caches of core %d\n",
			machine->cores[0]);
		return -ENOTSUP;
	}
	if (machine->l1_instructions.bytes == 0)
		machine->l1_instructions = machine->l1_data;
	return 0;
}

cpu_set_t machine_cache_neighbours(const struct machine *machine, int core)
{
	char name[64], line[1024];
	cpu_set_t neighbours;

	snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", machine->last_level_index);
	read_line(core, name, line, sizeof(line));
	if (!parse_list(line, &neighbours)) {
		CPU_ZERO(&neighbours);
		CPU_SET(core, &neighbours);
	}
	return neighbours;
}

bool machine_siblings(int one, int other)
{
	char line[256];
	cpu_set_t set;

	read_line(one, "topology/thread_siblings_list", line, sizeof(line));
	return one != other && parse_list(line, &set) && CPU_ISSET(other, &set);
}
