/* Lines that somebody writes into a pipe. */
#ifndef NFS_TESTBED_LINES_H
#define NFS_TESTBED_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define LONGEST_LINE (1 << 20)

struct lines {
	int file;
	bool ended, too_long;
	size_t begin, end; /* of what was read and not taken */
	char text[LONGEST_LINE];
};

enum line { LINE_READ, LINE_TOO_LONG, LINE_NO_MORE };

/*
 * The next line without its end, which may hold any byte, and lives until the next call. There are
 * no more when the file ends, cannot be read, or `*stop` turns true.
 */
enum line lines_next(struct lines *lines, const volatile bool *stop, const char **line,
		     size_t *length);

#endif
