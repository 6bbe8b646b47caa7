/* Files of processes that were killed before they could take them away. */
#ifndef NFS_TESTBED_LEFTOVERS_H
#define NFS_TESTBED_LEFTOVERS_H

/*
 * Remove the user's own files and folders of files in `folder` whose names match (fnmatch) and that
 * have been as they are for a day: nobody counts for as long.
 */
void leftovers_remove(const char *folder, const char *names);

#endif
