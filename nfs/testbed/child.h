/* Runs programs as child processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Search PATH for a program; false if it is not found. */
bool program_find(const char *program, char *path, size_t size);

/*
 * Run a program to its end; its output goes to the files stdout and stderr in `folder`. Returns its
 * process id, or a negative errno after printing why: not found, failed, stopped, or still running
 * at `until_ns` of clock_ns().
 */
pid_t child_run(char *const *words, const char *folder, const volatile bool *stop,
		uint64_t until_ns);

/* The number after `word` at the start of a line of the child's stdout; false if there is none. */
bool child_read_number(const char *folder, const char *word, double *number);
