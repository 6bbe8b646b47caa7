/* Shares of flows as exact fractions, so that every platform splits alike. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARE_MOST UINT64_C(1000000000000000000) /* of a numerator or denominator */

struct share {
	uint64_t part, of; /* part / of; 0 < part <= of <= SHARE_MOST */
};

/* "1/3", "0.25" or "1"; false if it is none, or not above 0 and at most 1. */
bool share_read(const char *text, struct share *share);

static inline double share_value(struct share share)
{
	return (double)share.part / (double)share.of;
}

/*
 * The limits of `n` shares in a range: flow values below limits[0] are the first one's, those below
 * limits[1] the second one's, ...; limits[k] is floor(range * (share 0 + ... + share k) / sum), the
 * last one `range`. False if the shares have no common denominator below 2^100.
 */
bool share_limits(const struct share *shares, unsigned int n, uint32_t range, uint32_t *limits);
