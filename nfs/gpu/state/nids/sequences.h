/*
 * Expressions as sets of sequences: each is items one after another, without groups. An expression
 * matches where one of its sequences does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_MOST_ITEMS 256
#define SEQUENCES_MOST 256 /* of an expression */

struct byte_set {
	uint64_t bits[4];
};

struct item {
	struct byte_set set;
	bool optional;
	bool loops; /* any number of such bytes may follow */
};

struct sequence {
	unsigned int n;
	struct item items[SEQUENCE_MOST_ITEMS];
};

struct sequences {
	unsigned int n, room;
	struct sequence *all;
};

static inline void byte_set_add(struct byte_set *set, unsigned int byte)
{
	set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static inline bool byte_set_has(const struct byte_set *set, unsigned int byte)
{
	return set->bits[byte / 64] >> byte % 64 & 1;
}

/* Functions return why they failed, or NULL. */

/* One empty sequence, which concatenation begins with. */
const char *sequences_of_nothing(struct sequences *made);
const char *sequences_copy(struct sequences *made, const struct sequences *from);
/* Append an item `least` to `most` times; any number if `most` is negative. */
const char *sequences_append(struct sequences *to, const struct item *item, int least, int most);
/* Every sequence of `to` with every one of `more` behind it. */
const char *sequences_multiply(struct sequences *to, const struct sequences *more);
/* Add those of `more`, too. */
const char *sequences_unite(struct sequences *to, const struct sequences *more);
void sequences_free(struct sequences *sequences);

/*
 * Leave out what decides nothing about whether there is a match: optional items and loops at both
 * ends.
 */
const char *sequences_trim(struct sequences *sequences);
