/* Counts events with valgrind's cachegrind. */
#pragma once

#include "testbed/machine.h"

#define CACHEGRIND_MOST_WORDS 16

/* Events of cachegrind, in the order of its output. */
enum cachegrind_event {
	INSTRUCTIONS,
	INSTRUCTION_MISSES,
	INSTRUCTION_LAST_MISSES,
	READS,
	READ_MISSES,
	READ_LAST_MISSES,
	WRITES,
	WRITE_MISSES,
	WRITE_LAST_MISSES,
	CACHEGRIND_EVENTS,
};

/*
 * The arguments that run `words` (ends with NULL) under cachegrind with this machine's caches;
 * results are written to `folder`. The arguments are valid until the next call.
 */
char *const *cachegrind_command(const struct machine *machine, const char *folder,
				char *const *words);

/*
 * Events between the fork and the end of the program: the totals of process `parent` minus those of
 * its child. 0, or a negative errno after printing why.
 */
int cachegrind_events(const char *folder, int parent, double events[CACHEGRIND_EVENTS]);
