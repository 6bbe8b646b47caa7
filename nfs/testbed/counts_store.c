#include "testbed/counts_store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testbed/fingerprint.h"
#include "testbed/folder.h"

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

void counts_remove_stale(void)
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
