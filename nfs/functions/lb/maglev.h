/*
 * Consistent hashing (Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
 * Balancer", NSDI 2016, section 3.4): backends take turns to claim entries of a table, each in an
 * order of its own. All get the same number of entries, at most one more or less; when one leaves,
 * few entries of the others change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAGLEV_MOST_BACKENDS 4096
#define MAGLEV_NONE UINT16_MAX /* in a table without backends */

bool maglev_is_prime(uint32_t number);

/*
 * Fill a table of `size` entries, a prime above the number of backends or a power of two, with the
 * indices of those that are up. The order of a backend depends on its index and the seed only. 0, or -ENOMEM.
 */
int maglev_fill(uint16_t *table, uint32_t size, const bool *up, uint32_t backends, uint64_t seed);

struct maglev_member {
	uint64_t seed;   /* of its order */
	uint32_t weight; /* its share of the table, relative to those of others; 0: it is down */
};

/*
 * The same with orders and weights of one's own, whose sum is at most `size`: so that each backend
 * has an entry. In each round, a backend takes a turn if its weight, times the number of the round,
 * passes the next multiple of the largest weight.
 */
int maglev_deal(uint16_t *table, uint32_t size, const struct maglev_member *members, uint32_t n);

/* The backend of a flow with this hash. */
static inline uint16_t maglev_backend(const uint16_t *table, uint32_t size, uint32_t hash)
{
	return table[(uint64_t)hash * size >> 32];
}
