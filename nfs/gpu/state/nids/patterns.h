/* Rules as the patterns of the device: one for each sequence of each rule's expression. */
#pragma once

#include "core/rules.h"
#include "gpu/kernels/nids.h"
#include "gpu/state/nids/literals.h"

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
