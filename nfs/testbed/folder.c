#include "testbed/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400

static const char *parent_folder(void)
{
	const char *configured = getenv("TMPDIR");

	return configured && *configured ? configured : "/tmp";
}

int folder_make(char *path, size_t size)
{
	snprintf(path, size, "%s/nf-testbed.XXXXXX", parent_folder());
	if (mkdtemp(path))
		return 0;
	fprintf(stderr, "testbed: %s: %s\n", path, strerror(errno));
	return -errno;
}

void folder_remove(const char *path)
{
	DIR *entries = opendir(path);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)) != NULL)
		unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries)
		closedir(entries);
	rmdir(path);
}

static bool is_stale(int folder, const char *name, struct stat *about)
{
	return fstatat(folder, name, about, AT_SYMLINK_NOFOLLOW) == 0 &&
	       about->st_uid == geteuid() && time(NULL) - about->st_mtime > DAY_S;
}

void folder_remove_stale(const char *folder, const char *names)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	struct stat about;

	while (entries && (entry = readdir(entries)) != NULL) {
		char path[PATH_MAX];

		if (fnmatch(names, entry->d_name, 0) != 0 ||
		    !is_stale(dirfd(entries), entry->d_name, &about))
			continue;
		if (!S_ISDIR(about.st_mode))
			unlinkat(dirfd(entries), entry->d_name, 0);
		else if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
			 (int)sizeof(path))
			folder_remove(path);
	}
	if (entries)
		closedir(entries);
}

void folders_remove_stale(void)
{
	folder_remove_stale(parent_folder(), "nf-testbed.??????");
}
