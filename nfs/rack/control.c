#include "rack/control.h"

#include <fcntl.h>
#include <stdio.h>
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
