/*
 * The rules that payloads are scanned for: application protocols by how their messages begin, in
 * the spirit of L7-filter.
 */
#ifndef NFS_CORE_RULES_H
#define NFS_CORE_RULES_H

#include <stdint.h>

/* What a protocol is for. Rules stand in this order: the lowest that matched is the gravest. */
enum rule_class {
	RULE_PEER_TO_PEER,
	RULE_REMOTE, /* somebody else's keyboard, or a tunnel */
	RULE_CHAT,
	RULE_MAIL,
	RULE_MEDIA,
	RULE_STORE, /* files, sources, databases */
	RULE_WEB,
	RULE_NETWORK,
	RULE_CLASSES
};

/* A rule, and a text that it matches and no other rule does. */
struct rule {
	const char *name;
	enum rule_class class;
	const char *expression; /* Perl-compatible, bytes; a dot is any byte; matches anywhere */
	const char *witness;    /* may hold any byte but 0 */
};

/* The rules; `*n` of them. */
const struct rule *rules(unsigned int *n);

#endif
