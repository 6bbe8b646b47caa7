/*
 * The rules that payloads are scanned for: application protocols by how their messages begin, in
 * the spirit of L7-filter.
 */
#ifndef NFS_ACCELERATORS_RULES_H
#define NFS_ACCELERATORS_RULES_H

#include <stdint.h>

/* A rule, and a text that it matches and no other rule does. */
struct rule {
	const char *name;
	const char *expression; /* Perl-compatible, bytes */
	const char *witness;    /* may hold any byte but 0 */
};

/* The rules; `*n` of them. */
const struct rule *rules(unsigned int *n);

#endif
