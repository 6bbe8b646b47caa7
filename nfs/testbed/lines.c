#include "testbed/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STOP_MS 100

/*
 * Wait for input or its end. poll() gets a timeout because a signal just before it would not end
 * it.
 */
static bool wait_for(const struct lines *lines, const volatile bool *stop)
{
	struct pollfd input = {.fd = lines->file, .events = POLLIN};

	while (!*stop) {
		const int ready = poll(&input, 1, STOP_MS);

		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR) {
			fprintf(stderr, "testbed: cannot wait for requests: %s\n", strerror(errno));
			return false;
		}
	}
	return false;
}

/* Read more input; of a line that is too long only the end is searched. */
static bool fill(struct lines *lines, const volatile bool *stop)
{
	ssize_t n;

	memmove(lines->text, lines->text + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = 0;
	if (lines->end == LONGEST_LINE) {
		lines->too_long = true;
		lines->end = 0;
	}
	do {
		if (!wait_for(lines, stop))
			return false;
		n = read(lines->file, lines->text + lines->end, LONGEST_LINE - lines->end);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		fprintf(stderr, "testbed: cannot read requests: %s\n", strerror(errno));
		return false;
	}
	lines->ended = n == 0;
	lines->end += (size_t)n;
	return true;
}

enum line lines_next(struct lines *lines, const volatile bool *stop, const char **line,
		     size_t *length)
{
	const char *end;
	bool too_long;

	do {
		*line = lines->text + lines->begin;
		end = memchr(*line, '\n', lines->end - lines->begin);
	} while (!end && !lines->ended && fill(lines, stop));
	*length = (end ? (size_t)(end - lines->text) : lines->end) - lines->begin;
	too_long = lines->too_long;
	if (!end && (!lines->ended || (*length == 0 && !too_long)))
		return LINE_NO_MORE;
	lines->begin += *length + (end ? 1 : 0);
	lines->too_long = false;
	return too_long ? LINE_TOO_LONG : LINE_READ;
}
