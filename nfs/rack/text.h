/*
 * Text files of the switch, line by line, as words; their faults are printed as FILE:LINE.
 *
 * What begins with ';', '#' or "//" is a comment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TEXT_MOST_WORDS 256

struct text {
	const char *path;
	char *bytes;  /* of the file; its words end in 0 */
	char *joined; /* lines with one space between words */
	char *next, *next_joined;
	unsigned int line, faults;
};

/* One line that is not empty. */
struct line {
	unsigned int number;
	unsigned int n;
	char *words[TEXT_MOST_WORDS];
	const char *whole; /* the words, with one space between */
};

/* Read a whole file. False after printing why. */
bool text_open(struct text *text, const char *path);
/* Words and lines are valid until then. */
void text_close(struct text *text);

/* The next line that is not empty; false at the end. A line with too many words is a fault. */
bool text_next(struct text *text, struct line *line);

/* Print a fault; of many only the first. */
void text_fault(struct text *text, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Read a number in C's notation that is at most `most`; false if it is none. */
bool text_number(const char *word, uint64_t most, uint64_t *number);
