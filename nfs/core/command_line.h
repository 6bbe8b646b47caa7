/* Reads the command line of a program by a table of its options; each has --help besides. */
#pragma once

#include <stdbool.h>

/* An option has one place for its value, or a function that takes it. */
struct command_option {
	const char *name; /* without "--"; NULL ends a table */
	bool needed;      /* its text must be given */
	bool *flag;       /* set by an option without a value */
	const char **text;
	unsigned int *number; /* a whole number from `least` to `most` */
	unsigned int least, most;
	double *real; /* above 0 */
	/* NULL, or what is wrong with the value; "" after printing that with a hint. It may cut it. */
	const char *(*take)(void *state, char *value);
};

struct command_line {
	const char *program, *help;
	const struct command_option *options;
	void *state; /* of what takes values */
	/* Takes an argument that is no option, as above; NULL: there are none. */
	const char *(*take_argument)(void *state, char *value);
};

#define COMMAND_LINE_READ (-1)

/* COMMAND_LINE_READ; or an exit status, 0 after printing help, 2 after printing every fault. */
int command_line_read(const struct command_line *line, int argc, char **argv);

/* Reads a whole number: NULL, or what is wrong with it. */
const char *command_line_number(const char *value, unsigned int least, unsigned int most,
				unsigned int *number);
