/* Files of a test, in a folder of its own. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support.h"

/* A file in the current folder. */
static inline void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Fixtures: a new current folder, which two files may be left in. */
static inline int enter_folder(void **state)
{
	char folder[] = "/tmp/nfs_XXXXXX";

	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state)
{
	char folder[64];

	(void)state;
	unlink("file");
	unlink("other");
	return getcwd(folder, sizeof(folder)) && chdir("/") == 0 ? rmdir(folder) : -1;
}

/* Those of support.h, too. */
static inline int setup_folder(void **state)
{
	return enter_folder(state) == 0 ? setup(state) : -1;
}

static inline int teardown_folder(void **state)
{
	return leave_folder(state) == 0 ? teardown(state) : -1;
}

#define FOLDER_TEST(test) TEST_WITH(test, struct rig *rig, setup_folder, teardown_folder)
#define NO_RIG_TEST(test) TEST_WITH(test, void *no_fixture, enter_folder, leave_folder)
