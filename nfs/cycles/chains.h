/*
 * Cycles per packet of chains on one core, beside what follows from their functions alone.
 *
 * Functions that run to completion on a core, a subgroup, are predicted to cost
 *
 *     source + sum over functions of visits * (alone - source)
 *
 * where `visits` are the packets that reach a function per packet that enters, counted in the
 * chain, and `source` is a chain without a function: Null alone, less the pass through the chain's
 * runtime that it makes. Every function makes such a pass. It is measured by a chain of many Nulls.
 *
 * A function alone gets packets as they reach it in the chain, made before time is taken: by the
 * functions before it that change packets, such as Tunnel before Detunnel; and with their headers
 * parsed, if one before it has parsed them, for which no other one pays again. `source` is that for
 * the same packets.
 *
 * Not predicted is what functions do to the memory of others in the core's caches.
 *
 * Chain and functions take turns in random order, a round of about a millisecond each, on the same
 * traffic. Several such rounds are a batch, of which the median counts: it is that of rounds which
 * nothing disturbed. Reported are medians and quartiles over batches, some of them of other
 * instances, whose memory lies elsewhere in the caches.
 */
#pragma once

#include <stdbool.h>

#include "cycles/measuring.h"

#define CHAINS_MOST 16

/* Whether it is a list of two functions or more, ACL,NAT; false after printing why. */
bool chains_knows(const char *chain);

/* Measure chains, the usual ones if there are none; print a table. False after printing why. */
bool chains_measure(const char *const *chains, unsigned int n, const struct load *load,
		    struct rte_mempool *spare);
