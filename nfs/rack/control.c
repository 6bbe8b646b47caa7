#include "rack/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_PER_LOOK 64 /* looking takes a system call */

static const char *const orders[CONTROL_ORDERS] = {
	[CONTROL_NONE] = "",       [CONTROL_REPORT] = "report", [CONTROL_PREPARE] = "prepare",
	[CONTROL_SWAP] = "swap",   [CONTROL_DRAIN] = "drain",   [CONTROL_GO] = "go",
	[CONTROL_END] = "end",
};

static void say(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

void control_begin(struct control *control)
{
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	control->on = true;
	say("ready");
}

static enum control_order order_of(const char *line)
{
	for (int order = CONTROL_REPORT; order < CONTROL_ORDERS; order++)
		if (strcmp(line, orders[order]) == 0)
			return (enum control_order)order;
	fprintf(stderr, "\"%s\" is no order\n", line);
	control_answer(false);
	return CONTROL_NONE;
}

enum control_order control_next(struct control *control, bool idle)
{
	if (!control->on || control->ended || (!idle && ++control->calls % CALLS_PER_LOOK))
		return CONTROL_NONE;
	for (;;) {
		char byte;
		const ssize_t got = read(STDIN_FILENO, &byte, 1);

		if (got == 0) {
			control->ended = true;
			return CONTROL_END;
		}
		if (got < 0)
			return CONTROL_NONE;
		if (byte == '\n') {
			control->line[control->length] = '\0';
			control->length = 0;
			return order_of(control->line);
		}
		if (control->length + 1 < sizeof(control->line))
			control->line[control->length++] = byte;
	}
}

void control_answer(bool done)
{
	say(done ? "done" : "failed");
}

bool control_write_report(const char *program, const char *path,
			  bool (*print)(FILE *file, const void *state, bool interrupted),
			  const void *state, bool interrupted)
{
	char *part = NULL;
	FILE *file = stdout;
	bool written;

	if (path && asprintf(&part, "%s.part", path) < 0) {
		fprintf(stderr, "%s: no memory for the report\n", program);
		return false;
	}
	if (path)
		file = fopen(part, "w");
	written = file && print(file, state, interrupted);
	written = written && fflush(file) == 0 && !ferror(file);
	if (file && path)
		written &= fclose(file) == 0;
	if (written && path)
		written = rename(part, path) == 0;
	if (!written)
		fprintf(stderr, "%s: %s: %s\n", program, path ? path : "stdout", strerror(errno));
	if (!written && path)
		unlink(part);
	free(part);
	return written;
}
