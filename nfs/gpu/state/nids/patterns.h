/* Rules as the patterns of the device: one for each sequence of each rule's expression. */
#pragma once

#include "core/rules.h"
#include "gpu/kernels/nids.h"
#include "gpu/state/nids/sequences.h"

/*
 * Literals that patterns require, and the automaton of Aho and Corasick (1975) that finds all of
 * them in one pass, ignoring case.
 */

#define LITERAL_LONGEST 16

/* The first bytes of the longest run of single bytes in a sequence; `n` is 0 without one. */
struct literal {
	unsigned int at, n;             /* items */
	uint8_t bytes[LITERAL_LONGEST]; /* in lower case */
};

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

struct patterns {
	unsigned int n, room;
	struct nids_pattern *all; /* but for the places of their tables */
	struct sequence *sequences;
	struct literal *literals;
};

/* Why the device cannot have an expression, in memory that the caller frees; NULL if it can. */
char *patterns_fault(const char *expression);

/* The patterns of rules; false after printing why. patterns_free() frees them in any case. */
bool patterns_make(const char *of, const struct rule_set *set, struct patterns *patterns);
void patterns_free(struct patterns *patterns);

/*
 * The number of the set that each byte belongs to: bytes that the same items have are one set.
 * Writes the items of each set, in words of 64, to `masks`, unless it is NULL; returns how many
 * sets there are.
 */
unsigned int patterns_sets(const struct sequence *sequence, uint8_t set_of[256], uint64_t *masks);

static inline unsigned int patterns_words(const struct nids_pattern *pattern)
{
	return (pattern->items + 63) / 64;
}

/* Functions of a trie return why they failed, or NULL. This one makes an empty one for the bytes of
 * `n` literals. */
const char *trie_begin(struct trie *trie, const struct literal *literals, unsigned int n);
void trie_free(struct trie *trie);
const char *trie_add(struct trie *trie, const struct literal *literal, uint32_t pattern);
/*
 * Complete the transitions; then `found` also has what ends with a suffix, in the order of states.
 */
const char *trie_complete(struct trie *trie);
