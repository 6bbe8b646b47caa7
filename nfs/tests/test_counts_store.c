#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "testbed/counts.h"
#include "testbed/fingerprint.h"
#include "testbed/folder.h"
#include "tests/support.h"

#define LOAD "{\"kind\":\"bench\"}"

static const struct counts stored = {1, 2, 3, 4, 5, 6.5};

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
static void counts_are_stored_per_program_and_caches(void **state)
{
	struct machine machine = {.l1_data = {32768, 8, 64}, .last_level = {1 << 20, 16, 64}};

	(void)state;
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
static void no_fingerprint_stores_nothing(void **state)
{
	const struct machine machine = {.l1_data = {1, 1, 1}};

	(void)state;
	store(&machine, 0);
	assert_false(is_stored(&machine, 0));
}

/* A damaged file is ignored, and the load is counted again. */
static void damaged_files_are_ignored(void **state)
{
	const struct machine machine = {.l1_data = {2, 2, 2}};
	char command[PATH_MAX + 64];

	(void)state;
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
static void fingerprints_depend_on_the_helper(void **state)
{
	const uint64_t alone = program_fingerprint("no-such-program");

	(void)state;
	assert_int_not_equal(alone, 0);
	assert_int_equal(program_fingerprint("no-such-program"), alone);
	assert_int_not_equal(program_fingerprint("sh"), alone);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_stored_per_program_and_caches),
		cmocka_unit_test(no_fingerprint_stores_nothing),
		cmocka_unit_test(damaged_files_are_ignored),
		cmocka_unit_test(fingerprints_depend_on_the_helper),
	};
	char folder[PATH_MAX], remove[PATH_MAX + 16];
	int failed;

	if (folder_make(folder, sizeof(folder)) < 0 || setenv("XDG_CACHE_HOME", folder, 1) < 0)
		return 1;
	failed = argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
	snprintf(remove, sizeof(remove), "rm -r '%s'", folder);
	return system(remove) == 0 ? failed : 1;
}
