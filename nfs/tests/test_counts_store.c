#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "testbed/counts.h"
#include "testbed/fingerprint.h"
#include "testbed/folder.h"
#include "tests/support.h"

#define LOAD "{\"kind\":\"bench\"}"

static const struct counts stored = {1, 2, 3, 4, 5, 6.5};

static char folder[PATH_MAX];

static int make_cache(void **state)
{
	(void)state;
	return folder_make(folder, sizeof(folder)) < 0 ? -1 : setenv("XDG_CACHE_HOME", folder, 1);
}

static int remove_cache(void **state)
{
	char remove[PATH_MAX + 16];

	(void)state;
	snprintf(remove, sizeof(remove), "rm -r '%s'", folder);
	return system(remove);
}

#define CACHE_TEST(test) TEST_WITH(test, void *no_fixture, make_cache, remove_cache)

/* The state of a new process: counts are only in the cache folder. */
static struct counting new_process(const struct machine *machine, uint64_t program)
{
	return (struct counting){.machine = machine,
				 .source = COUNTERS_CACHEGRIND,
				 .program = program,
				 .cached = json_object()};
}

static bool is_stored(const struct machine *machine, uint64_t program)
{
	struct counting counting = new_process(machine, program);
	struct counts counts = {0};
	const bool found = counts_load(&counting, LOAD, &counts);

	json_decref(counting.cached);
	assert_true(!found || memcmp(&counts, &stored, sizeof(stored)) == 0);
	return found;
}

static void store(const struct machine *machine, uint64_t program)
{
	struct counting counting = new_process(machine, program);

	counts_save(&counting, LOAD, &stored);
	json_decref(counting.cached);
}

/* Counts outlive a process; another program or other caches have none. */
CACHE_TEST(counts_are_stored_per_program_and_caches)
{
	struct machine machine = {.l1_data = {32768, 8, 64}, .last_level = {1 << 20, 16, 64}};

	assert_false(is_stored(&machine, 1));
	store(&machine, 1);
	assert_true(is_stored(&machine, 1));
	assert_false(is_stored(&machine, 2));
	machine.last_level.line = 128;
	assert_false(is_stored(&machine, 1));
	machine.last_level.line = 64;
	machine.l1_instructions.bytes = 32768;
	assert_false(is_stored(&machine, 1));
}

/* A program without a fingerprint stores nothing: it could be mistaken for another. */
CACHE_TEST(no_fingerprint_stores_nothing)
{
	const struct machine machine = {.l1_data = {1, 1, 1}};

	store(&machine, 0);
	assert_false(is_stored(&machine, 0));
}

/* A damaged file is ignored, and the load is counted again. */
CACHE_TEST(damaged_files_are_ignored)
{
	const struct machine machine = {.l1_data = {2, 2, 2}};
	char command[PATH_MAX + 64];

	store(&machine, 3);
	assert_true(is_stored(&machine, 3));
	snprintf(command, sizeof(command), "for f in %s/nf-placer/counts/*; do echo '{' > $f; done",
		 getenv("XDG_CACHE_HOME"));
	assert_int_equal(system(command), 0);
	assert_false(is_stored(&machine, 3));
	store(&machine, 3);
	assert_true(is_stored(&machine, 3));
}

/* A fingerprint depends on the program and on its helper. */
CACHE_TEST(fingerprints_depend_on_the_helper)
{
	const uint64_t alone = program_fingerprint("no-such-program");

	assert_int_not_equal(alone, 0);
	assert_int_equal(program_fingerprint("no-such-program"), alone);
	assert_int_not_equal(program_fingerprint("sh"), alone);
}
