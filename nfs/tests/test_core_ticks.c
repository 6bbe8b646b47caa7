#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "testbed/core_ticks.h"
#include "testbed/folder.h"
#include "tests/support.h"

static struct core_ticks cores[CPU_SETSIZE];

/* A file of a machine with `n` cores, each with a different busy time. */
static void make_file(const char *path, int n)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs("cpu  1000000 2000000 3000000 4000000 5000000 6000000 7000000 8000000 0 0\n", file);
	for (int core = 0; core < n; core++)
		fprintf(file, "cpu%d 1000000 2000000 3000000 99 99 4000000 5000000 %d 0 0\n", core,
			core);
	fputs("intr 123 4 5\nctxt 1\n", file);
	assert_int_equal(fclose(file), 0);
}

/* All cores are read, for any number of cores. */
TEST(reads_every_core)
{
	char folder[PATH_MAX], path[PATH_MAX + 8];

	assert_int_equal(folder_make(folder, sizeof(folder)), 0);
	snprintf(path, sizeof(path), "%s/stat", folder);
	make_file(path, CPU_SETSIZE);
	assert_int_equal(core_ticks_read(path, cores), 0);
	for (uint64_t core = 0; core < CPU_SETSIZE; core++) {
		assert_int_equal(cores[core].busy, 15000000 + core);
		assert_int_equal(cores[core].stolen, core);
	}
	make_file(path, 0);
	assert_int_equal(core_ticks_read(path, cores), -ENODATA);
	folder_remove(folder);
	assert_int_equal(core_ticks_read(path, cores), -ENOENT);
}

/* It reads the file of this machine. */
TEST(reads_this_machine)
{
	cores[0] = (struct core_ticks){0};
	assert_int_equal(core_ticks_read(CORE_TICKS, cores), 0);
	assert_true(cores[0].busy > 0);
}
