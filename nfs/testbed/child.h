/* Programs that are started and waited for. */
#ifndef NFS_TESTBED_CHILD_H
#define NFS_TESTBED_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The path of a program that is found as the shell does; false when there is none. */
bool program_find(const char *program, char *path, size_t size);

/*
 * Run a program to its end. Its stdout and stderr become files of those names in `folder`. Its
 * process, or a negative errno after printing how it failed: not found, ended with an error, was
 * stopped, or still ran at `until_ns` of clock_ns().
 */
pid_t child_run(char *const *words, const char *folder, const volatile bool *stop,
		uint64_t until_ns);

/* The number behind a word at the beginning of a line of the child's stdout; false without. */
bool child_read_number(const char *folder, const char *word, double *number);

#endif
