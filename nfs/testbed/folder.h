/* Temporary folders, and the removal of those that killed processes left behind. */
#pragma once

#include <stddef.h>

/* Make a temporary folder under TMPDIR. 0, or a negative errno after printing why. */
int folder_make(char *path, size_t size);
/* Remove a folder and the files in it. */
void folder_remove(const char *path);

/*
 * Remove the user's own files and folders of files in `folder` whose names match (fnmatch) and that
 * have not changed for a day: no measurement takes as long.
 */
void folder_remove_stale(const char *folder, const char *names);
/* Remove stale temporary folders of earlier processes. */
void folders_remove_stale(void);
