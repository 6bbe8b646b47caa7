/* Rules for scans of payloads, read from a file. */
#pragma once

#include <stdbool.h>

#include "core/rules.h"

#define RULES_MOST 10000

/* Why an engine cannot have an expression, in memory that the caller frees; NULL if it can. */
typedef char *(*rule_fault)(const char *expression);

/*
 * Read the rules of a file; false after printing why. A line is
 *
 *     CLASS EXPRESSION
 *
 * CLASS is one of peer-to-peer, remote, chat, mail, media, store, web and network; EXPRESSION is
 * the rest of the line, Perl-compatible, of bytes; a dot matches any byte. A line that begins with
 * `#` is a comment. The set is freed with rule_file_free().
 */
bool rule_file_read(const char *of, const char *path, rule_fault fault, struct rule_set *set);
void rule_file_free(struct rule_set *set);
