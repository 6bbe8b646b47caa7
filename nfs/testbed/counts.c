#include "testbed/counts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbed/cachegrind.h"
#include "testbed/child.h"
#include "testbed/counts_store.h"
#include "testbed/fingerprint.h"
#include "testbed/folder.h"
#include "testbed/hardware_events.h"
#include "testbed/request.h"

#define COMMAND_WORDS 14

int counting_open(struct counting *counting, const struct machine *machine,
		  const struct options *options, const volatile bool *stop)
{
	const enum counter_source best =
		hardware_events_try() == 0 ? COUNTERS_PERF : COUNTERS_CACHEGRIND;
	const enum counter_source source =
		options->counters == COUNTERS_BEST ? best : options->counters;
	char path[PATH_MAX];

	*counting = (struct counting){.machine = machine,
				      .source = source,
				      .cores = options->cores,
				      .memory_mb = options->memory_mb,
				      .stop = stop};
	if (source == COUNTERS_PERF && best != COUNTERS_PERF) {
		fprintf(stderr,
			"testbed: --counters perf: this machine does not count all events\n");
		return -ENODEV;
	}
	if (source == COUNTERS_CACHEGRIND && !program_find("valgrind", path, sizeof(path))) {
		fprintf(stderr, "testbed: counters need valgrind, which is not installed\n"
				"hint: make deps, or --counters none, which reports zeros\n");
		return -ENOENT;
	}
	return 0;
}

int counting_start(struct counting *counting)
{
	folders_remove_stale();
	counts_remove_stale();
	counting->cached = json_object();
	counting->program = program_fingerprint("valgrind");
	if (counting->program == 0)
		fprintf(stderr,
			"testbed: cannot read the program's own file: counts are not cached\n");
	return counting->cached ? 0 : -ENOMEM;
}

void counting_close(struct counting *counting)
{
	json_decref(counting->cached);
	counting->cached = NULL;
}

uint64_t counted_units(const struct load *load)
{
	const unsigned int accelerators = load_accelerators(load);

	if (accelerators & NF_USES(ACCELERATOR_COMPRESSION))
		return 2000;
	if (accelerators)
		return 20000;
	return load->bench ? 2000000 : 200000;
}

/* Enough units to touch every page of the tables. */
static uint64_t page_units(const struct load *load)
{
	const uint64_t enough = load->bench ? 20000000 : 4ull * load->traffic.flows;
	const uint64_t counted = counted_units(load);

	return load_accelerators(load) || enough < counted ? counted : enough;
}

struct command {
	char program[PATH_MAX], units[32], memory[16], parent[16];
	char *words[COMMAND_WORDS];
};

static void make_command(struct command *command, const struct counting *counting, char *load,
			 uint64_t units, bool native)
{
	const ssize_t length =
		readlink("/proc/self/exe", command->program, sizeof(command->program) - 1);
	int n = 0;

	command->program[length > 0 ? length : 0] = '\0';
	snprintf(command->units, sizeof(command->units), "%lu", (unsigned long)units);
	snprintf(command->memory, sizeof(command->memory), "%u", counting->memory_mb);
	command->words[n++] = command->program;
	command->words[n++] = "--count";
	command->words[n++] = load;
	command->words[n++] = "--units";
	command->words[n++] = command->units;
	command->words[n++] = "--memory";
	command->words[n++] = command->memory;
	snprintf(command->parent, sizeof(command->parent), "%d", (int)getpid());
	command->words[n++] = "--parent";
	command->words[n++] = command->parent;
	if (counting->cores) {
		command->words[n++] = "--cores";
		command->words[n++] = (char *)(uintptr_t)counting->cores;
	}
	if (native)
		command->words[n++] = "--pages";
	if (native && counting->source == COUNTERS_PERF)
		command->words[n++] = "--events";
	command->words[n] = NULL;
}

static bool take_hardware_events(const char *folder, struct counts *counts)
{
	double events[HARDWARE_EVENTS], units = 0;

	for (int i = 0; i < HARDWARE_EVENTS; i++)
		if (!child_read_number(folder, hardware_event_names[i], &events[i]))
			return false;
	if (!child_read_number(folder, "units", &units) || units == 0)
		return false;
	counts->instructions = events[HARDWARE_INSTRUCTIONS] / units;
	counts->l2_reads = events[HARDWARE_L1_READ_MISSES] / units;
	counts->l2_writes = events[HARDWARE_L1_WRITE_MISSES] / units;
	counts->memory_reads = events[HARDWARE_LAST_READ_MISSES] / units;
	counts->memory_writes = events[HARDWARE_LAST_WRITE_MISSES] / units;
	return true;
}

static int count_natively(const struct counting *counting, const struct load *load, char *text,
			  const char *folder, struct counts *counts)
{
	struct command command;
	double bytes = 0;
	pid_t child;

	make_command(&command, counting, text, page_units(load), true);
	child = child_run(command.words, folder, counting->stop, counting->until_ns);
	if (child < 0)
		return child;
	if (!child_read_number(folder, "pages", &bytes) ||
	    (counting->source == COUNTERS_PERF && !take_hardware_events(folder, counts)))
		return -EPROTO;
	counts->working_set_mb = bytes / 1e6;
	return 0;
}

static int simulate(const struct counting *counting, const struct load *load, char *text,
		    const char *folder, struct counts *counts)
{
	struct command command;
	double events[CACHEGRIND_EVENTS], units = 0;
	pid_t child;
	int result;

	make_command(&command, counting, text, counted_units(load), false);
	child = child_run(cachegrind_command(counting->machine, folder, command.words), folder,
			  counting->stop, counting->until_ns);
	if (child < 0)
		return child;
	if (!child_read_number(folder, "units", &units) || units == 0)
		return -EPROTO;
	result = cachegrind_events(folder, child, events);
	if (result < 0)
		return result;
	counts->instructions = events[INSTRUCTIONS] / units;
	counts->l2_reads = (events[INSTRUCTION_MISSES] + events[READ_MISSES]) / units;
	counts->l2_writes = events[WRITE_MISSES] / units;
	counts->memory_reads = (events[INSTRUCTION_LAST_MISSES] + events[READ_LAST_MISSES]) / units;
	counts->memory_writes = events[WRITE_LAST_MISSES] / units;
	return 0;
}

static int count(const struct counting *counting, const struct load *load, char *text,
		 struct counts *counts)
{
	char folder[PATH_MAX];
	int result = folder_make(folder, sizeof(folder));

	if (result < 0)
		return result;
	result = count_natively(counting, load, text, folder, counts);
	if (result == 0 && counting->source == COUNTERS_CACHEGRIND)
		result = simulate(counting, load, text, folder, counts);
	folder_remove(folder);
	return result;
}

int counts_get(struct counting *counting, const struct load *load, struct counts *counts)
{
	json_t *json = load_json(load, true);
	char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	int result = text ? 0 : -ENOMEM;

	json_decref(json);
	if (result == 0 && !counts_load(counting, text, counts)) {
		result = count(counting, load, text, counts);
		if (result == 0)
			counts_save(counting, text, counts);
	}
	free(text);
	return result;
}
