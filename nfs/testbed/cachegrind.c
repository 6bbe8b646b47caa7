#include "testbed/cachegrind.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw"
#define FILES "events." /* followed by the process id */

/* Format a cache for cachegrind, which simulates only numbers of sets that are powers of two. */
static void format_cache(char *text, size_t size, const char *name, const struct cache *cache)
{
	uint64_t sets = 1, ways = cache->ways;

	while (2 * sets * ways * cache->line <= cache->bytes)
		sets *= 2;
	ways = cache->bytes / (sets * cache->line);
	snprintf(text, size, "--%s=%lu,%lu,%u", name, (unsigned long)(sets * ways * cache->line),
		 (unsigned long)ways, cache->line);
}

char *const *cachegrind_command(const struct machine *machine, const char *folder,
				char *const *words)
{
	static char caches[3][64], results[PATH_MAX];
	static char *command[CACHEGRIND_MOST_WORDS + 9];
	int n = 0;

	format_cache(caches[0], sizeof(caches[0]), "I1", &machine->l1_instructions);
	format_cache(caches[1], sizeof(caches[1]), "D1", &machine->l1_data);
	format_cache(caches[2], sizeof(caches[2]), "LL", &machine->last_level);
	snprintf(results, sizeof(results), "--cachegrind-out-file=%s/" FILES "%%p", folder);
	command[n++] = "valgrind";
	command[n++] = "--tool=cachegrind";
	command[n++] = "--cache-sim=yes";
	command[n++] = "--vgdb=no"; /* its pipes would stay in TMPDIR when the program is killed */
	command[n++] = results;
	for (int i = 0; i < 3; i++)
		command[n++] = caches[i];
	for (int i = 0; words[i] && i < CACHEGRIND_MOST_WORDS; i++)
		command[n++] = words[i];
	command[n] = NULL;
	return command;
}

static bool parse_summary(const char *line, double events[CACHEGRIND_EVENTS])
{
	char *rest = strchr(line, ':') + 1;

	for (int i = 0; i < CACHEGRIND_EVENTS; i++) {
		const char *number = rest;

		events[i] = (double)strtoull(number, &rest, 10);
		if (rest == number)
			return false;
	}
	return true;
}

static int read_totals(const char *path, double events[CACHEGRIND_EVENTS])
{
	FILE *file = fopen(path, "r");
	char line[4096];
	bool known_format = false, found = false;

	if (!file) {
		fprintf(stderr, "testbed: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	while (fgets(line, sizeof(line), file)) {
		known_format |= strncmp(line, EVENTS, sizeof(EVENTS) - 1) == 0;
		if (strncmp(line, "summary:", 8) == 0)
			found = parse_summary(line, events);
	}
	fclose(file);
	if (known_format && found)
		return 0;
	fprintf(stderr, "testbed: %s: not in cachegrind's format\n", path);
	return -EPROTO;
}

/* The process other than `parent` that wrote results, or 0. */
static int child_of(const char *folder, int parent)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	int child = 0;

	while (entries && (entry = readdir(entries)) != NULL) {
		int process = 0;

		if (sscanf(entry->d_name, FILES "%d", &process) == 1 && process != parent)
			child = process;
	}
	if (entries)
		closedir(entries);
	return child;
}

int cachegrind_events(const char *folder, int parent, double events[CACHEGRIND_EVENTS])
{
	const int processes[] = {child_of(folder, parent), parent};
	double totals[2][CACHEGRIND_EVENTS];

	for (int i = 0; i < 2; i++) {
		char path[PATH_MAX];
		int result;

		snprintf(path, sizeof(path), "%s/" FILES "%d", folder, processes[i]);
		result = read_totals(path, totals[i]);
		if (result < 0)
			return result;
	}
	for (int i = 0; i < CACHEGRIND_EVENTS; i++)
		events[i] = fmax(totals[1][i] - totals[0][i],
				 0); /* the child's exit causes misses, too */
	return 0;
}
