/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

struct siphash_key {
	uint64_t halves[2];
};

static inline uint64_t siphash_rotated(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotated(v[1], 13) ^ v[0];
	v[3] = siphash_rotated(v[3], 16) ^ v[2];
	v[0] = siphash_rotated(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = siphash_rotated(v[1], 17) ^ v[2];
	v[3] = siphash_rotated(v[3], 21) ^ v[0];
	v[2] = siphash_rotated(v[2], 32);
}

static inline void siphash_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	siphash_round(v);
	siphash_round(v);
	v[0] ^= word;
}

static inline uint64_t siphash(const struct siphash_key *key, const uint8_t *bytes, size_t length)
{
	uint64_t v[4] = {
		key->halves[0] ^ 0x736f6d6570736575ull,
		key->halves[1] ^ 0x646f72616e646f6dull,
		key->halves[0] ^ 0x6c7967656e657261ull,
		key->halves[1] ^ 0x7465646279746573ull,
	};
	uint64_t word;
	size_t at;

	for (at = 0; at + sizeof(word) <= length; at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		siphash_word(v, rte_le_to_cpu_64(word));
	}
	word = (uint64_t)length << 56;
	for (size_t i = 0; at + i < length; i++)
		word |= (uint64_t)bytes[at + i] << 8 * i;
	siphash_word(v, word);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
