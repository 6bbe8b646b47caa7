#include "testbed/counts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testbed/cachegrind.h"
#include "testbed/child.h"
#include "testbed/fingerprint.h"
#include "testbed/folder.h"
#include "testbed/hardware_events.h"
#include "testbed/request.h"

#define FOLDER "/nf-placer/counts"

/* The folder in the user's cache, created if missing; false without a home folder. */
static bool cache_folder(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	size_t n;

	if (cache && cache[0] == '/')
		n = (size_t)snprintf(path, size, "%s" FOLDER, cache);
	else if (home)
		n = (size_t)snprintf(path, size, "%s/.cache" FOLDER, home);
	else
		return false;
	if (n >= size)
		return false;
	for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	return mkdir(path, 0755) == 0 || errno == EEXIST;
}

/* The key of counts: the program, the simulated caches, and the load. */
static void make_key(const struct counting *counting, const char *load, char *key, size_t size)
{
	const struct cache *caches[] = {&counting->machine->l1_instructions,
					&counting->machine->l1_data,
					&counting->machine->last_level};
	size_t n = (size_t)snprintf(key, size, "%016lx %s", (unsigned long)counting->program,
				    counter_source_names[counting->source]);

	for (int i = 0; i < 3; i++)
		n += (size_t)snprintf(key + n, size - n, " %lu/%u/%u",
				      (unsigned long)caches[i]->bytes, caches[i]->ways,
				      caches[i]->line);
	snprintf(key + n, size - n, " %s", load);
}

static bool make_path(const char *key, const char *suffix, char *path, size_t size)
{
	char folder[PATH_MAX - 64];

	if (!cache_folder(folder, sizeof(folder)))
		return false;
	snprintf(path, size, "%s/%016lx.json%s", folder,
		 (unsigned long)fingerprint(FINGERPRINT_BASIS, key, strlen(key)), suffix);
	return true;
}

static bool from_json(const json_t *json, const char *key, struct counts *counts)
{
	const char *of = json_string_value(json_object_get(json, "of"));

	return of && strcmp(of, key) == 0 &&
	       json_unpack((json_t *)(uintptr_t)json, "{s:F, s:F, s:F, s:F, s:F, s:F}",
			   "instructions", &counts->instructions, "l2_reads", &counts->l2_reads,
			   "l2_writes", &counts->l2_writes, "memory_reads", &counts->memory_reads,
			   "memory_writes", &counts->memory_writes, "working_set_mb",
			   &counts->working_set_mb) == 0;
}

static json_t *to_json(const char *key, const struct counts *counts)
{
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "of", key, "instructions",
			 counts->instructions, "l2_reads", counts->l2_reads, "l2_writes",
			 counts->l2_writes, "memory_reads", counts->memory_reads, "memory_writes",
			 counts->memory_writes, "working_set_mb", counts->working_set_mb);
}

bool counts_load(struct counting *counting, const char *load, struct counts *counts)
{
	char key[2048], path[PATH_MAX];
	json_t *json;

	make_key(counting, load, key, sizeof(key));
	if (from_json(json_object_get(counting->cached, key), key, counts))
		return true;
	if (counting->program == 0 || !make_path(key, "", path, sizeof(path)))
		return false;
	json = json_load_file(path, 0, NULL);
	if (!from_json(json, key, counts)) {
		json_decref(json);
		return false;
	}
	json_object_set_new(counting->cached, key, json);
	return true;
}

/* Remove temporary files of processes that were killed while they wrote. */
static void counts_remove_stale(void)
{
	char folder[PATH_MAX];

	if (cache_folder(folder, sizeof(folder)))
		folder_remove_stale(folder, "*.json.*");
}

/* Write a temporary file and rename it: other processes never see half a file. */
static void write_file(const char *key, const json_t *json)
{
	char path[PATH_MAX], temporary[PATH_MAX], suffix[32];

	snprintf(suffix, sizeof(suffix), ".%d", (int)getpid());
	if (!make_path(key, "", path, sizeof(path)) ||
	    !make_path(key, suffix, temporary, sizeof(temporary)))
		return;
	if (json_dump_file(json, temporary, JSON_INDENT(1)) < 0 || rename(temporary, path) < 0) {
		fprintf(stderr, "testbed: cannot store counts in %s: %s\n", path, strerror(errno));
		unlink(temporary);
	}
}

void counts_save(struct counting *counting, const char *load, const struct counts *counts)
{
	char key[2048];
	json_t *json;

	make_key(counting, load, key, sizeof(key));
	json = to_json(key, counts);
	if (counting->program != 0)
		write_file(key, json);
	json_object_set_new(counting->cached, key, json);
}

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

/* Units to count: enough to be accurate, few enough for a simulator. */
static uint64_t counted_units(const struct load *load)
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
	json_t *json = load_json(load);
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
