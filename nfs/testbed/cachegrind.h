/* Counting by valgrind's cachegrind. */
#ifndef NFS_TESTBED_CACHEGRIND_H
#define NFS_TESTBED_CACHEGRIND_H

#include "testbed/machine.h"

#define CACHEGRIND_MOST_WORDS 16

/* Events that cachegrind counts, in the order in which it writes them. */
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
 * The words of a command that runs `words`, NULL after the last, under cachegrind with the caches
 * of the machine; its results go into `folder`. They live until the next call.
 */
char *const *cachegrind_command(const struct machine *machine, const char *folder,
				char *const *words);

/*
 * The events between the fork and the end of what ran: the totals of process `parent` less those
 * of its child. 0, or a negative errno after printing why.
 */
int cachegrind_events(const char *folder, int parent, double events[CACHEGRIND_EVENTS]);

#endif
