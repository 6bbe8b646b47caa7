#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testbed/folder.h"
#include "tests/support.h"

static const char *in(const char *folder, const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make_file(const char *folder, const char *name)
{
	const int file = open(in(folder, name), O_WRONLY | O_CREAT, 0600);

	assert_true(file >= 0);
	close(file);
}

static void age(const char *folder, const char *name, time_t hours)
{
	const struct timespec then[] = {{.tv_sec = time(NULL) - 3600 * hours},
					{.tv_sec = time(NULL) - 3600 * hours}};

	assert_int_equal(utimensat(AT_FDCWD, in(folder, name), then, 0), 0);
}

static bool exists(const char *folder, const char *name)
{
	return access(in(folder, name), F_OK) == 0;
}

/* A matching file or folder that is a day old is removed; newer ones and other names stay. */
TEST(stale_entries_are_removed)
{
	char folder[PATH_MAX];

	assert_int_equal(folder_make(folder, sizeof(folder)), 0);
	make_file(folder, "1.json.7");
	make_file(folder, "2.json.7");
	make_file(folder, "3.json");
	assert_int_equal(mkdir(in(folder, "4.json.7"), 0700), 0);
	make_file(folder, "4.json.7/stdout");
	age(folder, "1.json.7", 25);
	age(folder, "2.json.7", 23);
	age(folder, "3.json", 25);
	age(folder, "4.json.7", 25);
	folder_remove_stale(folder, "*.json.*");
	assert_false(exists(folder, "1.json.7"));
	assert_true(exists(folder, "2.json.7"));
	assert_true(exists(folder, "3.json"));
	assert_false(exists(folder, "4.json.7"));
	folder_remove(folder);
}

/* A folder that does not exist is no error. */
TEST(a_missing_folder_is_ignored)
{
	folder_remove_stale("/nowhere", "*");
}
