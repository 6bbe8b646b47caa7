/*
 * Literals that patterns require, and the automaton of Aho and Corasick (1975) that finds all of
 * them in one pass, ignoring case.
 */
#pragma once

#include "gpu/state/nids/sequences.h"

#define LITERAL_LONGEST 16

/* The first bytes of the longest run of single bytes in a sequence; `n` is 0 without one. */
struct literal {
	unsigned int at, n;             /* items */
	uint8_t bytes[LITERAL_LONGEST]; /* in lower case */
};

struct literal literal_of(const struct sequence *sequence);

/* A trie of literals, which becomes an automaton. */
struct trie {
	unsigned int n, room; /* states; 0 is the start */
	unsigned int symbols;
	uint8_t symbol_of[256]; /* of each byte; 0: in no literal */
	uint16_t *next;         /* by state and symbol */
	uint16_t *fail;         /* of each state: that of its longest proper suffix */
	unsigned int n_found, found_room;
	struct found {
		uint16_t state;
		uint32_t pattern;
	} * found;
};

/* Functions return why they failed, or NULL. */

/* An empty trie for the bytes of `n` literals. */
const char *trie_begin(struct trie *trie, const struct literal *literals, unsigned int n);
const char *trie_add(struct trie *trie, const struct literal *literal, uint32_t pattern);
/*
 * Complete the transitions; then `found` also has what ends with a suffix, in the order of states.
 */
const char *trie_complete(struct trie *trie);
void trie_free(struct trie *trie);
