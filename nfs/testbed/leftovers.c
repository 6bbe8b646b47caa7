#include "testbed/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testbed/child.h"

#define DAY_S 86400

static bool is_left_over(int folder, const char *name, struct stat *about)
{
	return fstatat(folder, name, about, AT_SYMLINK_NOFOLLOW) == 0 &&
	       about->st_uid == geteuid() && time(NULL) - about->st_mtime > DAY_S;
}

void leftovers_remove(const char *folder, const char *names)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	struct stat about;

	while (entries && (entry = readdir(entries)) != NULL) {
		char path[PATH_MAX];

		if (fnmatch(names, entry->d_name, 0) != 0 ||
		    !is_left_over(dirfd(entries), entry->d_name, &about))
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
