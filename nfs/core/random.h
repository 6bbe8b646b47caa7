/* Pseudorandom numbers from a seed, the same on every machine. */
#pragma once

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood, 2014): every state is a valid seed. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* A number from 0 to n - 1. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((random_next(state) >> 32) * n) >> 32);
}
