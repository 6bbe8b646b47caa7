/*
 * The rules for scans of payloads: application protocols by the beginning of their messages, in the
 * spirit of L7-filter.
 */
#pragma once

#include <stdint.h>

/* Classes of protocols, most severe first. */
enum rule_class {
	RULE_PEER_TO_PEER,
	RULE_REMOTE, /* remote access, and tunnels */
	RULE_CHAT,
	RULE_MAIL,
	RULE_MEDIA,
	RULE_STORE, /* files, source code, databases */
	RULE_WEB,
	RULE_NETWORK,
	RULE_CLASSES
};

/* A rule, and a text that matches it and no other rule. */
struct rule {
	const char *name;
	enum rule_class class;
	const char
		*expression; /* Perl-compatible, of bytes; a dot matches any byte; not anchored */
	const char *witness; /* any bytes but 0 */
};

struct rule_set {
	const struct rule *rules;
	unsigned int n;
};

/* The rules; `*n` of them. */
const struct rule *rules(unsigned int *n);
