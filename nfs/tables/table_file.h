/*
 * Reads a table from a text file: an entry a line, as words separated by spaces; a `#` begins a
 * comment. All faults are printed as FILE:LINE: what is wrong, 20 at most.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_MOST_WORDS 8

struct prefix {
	uint32_t address; /* in host byte order, zeros beyond `depth` bits */
	uint8_t depth;
};

struct prefix_ipv6 {
	uint8_t address[16]; /* zeros beyond `depth` bits */
	uint8_t depth;
};

struct table_file {
	const char *of;   /* whose table, for messages */
	const char *path; /* of the file */
	const char *hint; /* printed after faults */
	FILE *stream;
	unsigned int line, faults;
	unsigned int n; /* words of the line */
	char *words[TABLE_MOST_WORDS];
	char *text;
	size_t room;
};

/* False after printing why. */
bool table_file_open(struct table_file *file, const char *of, const char *path, const char *hint);
/* The words of the next line that has any; false at the end. */
bool table_file_next(struct table_file *file);
/*
 * The first word of the next line that has any, alone in `words`, and in `*rest` what follows it,
 * without spaces at its end. Only a `#` at the beginning of a line begins a comment.
 */
bool table_file_next_text(struct table_file *file, char **rest);
/* Whether there were no faults; prints the hint otherwise. */
bool table_file_close(struct table_file *file);

/* Print what is wrong with a line of the file. */
void table_fault_at(struct table_file *file, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define table_fault(file, ...) table_fault_at(file, (file)->line, __VA_ARGS__)

/* A whole number from `low` to `high`; false if the word is none. */
bool table_number(const char *word, uint32_t low, uint32_t high, uint32_t *number);

/* An address, with or without a prefix length, or `any`. False after printing the fault. */
bool table_prefix(struct table_file *file, const char *word, struct prefix *prefix);
/* The same of IPv6, of a word with colons. */
bool table_prefix_ipv6(struct table_file *file, const char *word, struct prefix_ipv6 *prefix);
