/* Reads lines from a pipe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LONGEST_LINE (1 << 20)

struct lines {
	int file;
	bool ended, too_long;
	size_t begin, end; /* the part that was read but not returned */
	char text[LONGEST_LINE];
};

enum line { LINE_READ, LINE_TOO_LONG, LINE_NO_MORE };

/*
 * The next line without its newline; it may hold any byte and is valid until the next call.
 * LINE_NO_MORE when the file ends, cannot be read, or `*stop` becomes true.
 */
enum line lines_next(struct lines *lines, const volatile bool *stop, const char **line,
		     size_t *length);
