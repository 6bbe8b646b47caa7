/* SHA-1 (RFC 3174), of words in network order that are aligned to 4 bytes. */
#pragma once

#include "gpu/device.h"

#define SHA1_WORDS 5

struct sha1 {
	u32 a, b, c, d, e;
};

DEVICE u32 rotated_left(u32 word, u32 bits)
{
	return word << bits | word >> (32 - bits);
}

DEVICE struct sha1 sha1_round(struct sha1 h, u32 mixed, u32 added, u32 word)
{
	struct sha1 next;

	next.a = rotated_left(h.a, 5) + mixed + h.e + added + word;
	next.b = h.a;
	next.c = rotated_left(h.b, 30);
	next.d = h.c;
	next.e = h.d;
	return next;
}

/* The word of a round from 16 on, in a window of the last 16. */
DEVICE u32 sha1_expand(u32 w[16], u32 round)
{
	w[round & 15] = rotated_left(w[(round + 13) & 15] ^ w[(round + 8) & 15] ^
					     w[(round + 2) & 15] ^ w[round & 15],
				     1);
	return w[round & 15];
}

/* Hash a block of 16 words, which are used up. Loops unroll, so that the window is registers. */
DEVICE struct sha1 sha1_block(struct sha1 before, u32 w[16])
{
	struct sha1 h = before;

	UNROLL for (u32 i = 0; i < 20; i++) h = sha1_round(
		h, h.d ^ (h.b & (h.c ^ h.d)), 0x5a827999u, i < 16 ? w[i] : sha1_expand(w, i));
	UNROLL for (u32 i = 20; i < 40; i++) h =
		sha1_round(h, h.b ^ h.c ^ h.d, 0x6ed9eba1u, sha1_expand(w, i));
	UNROLL for (u32 i = 40; i < 60; i++) h =
		sha1_round(h, (h.b & h.c) | (h.d & (h.b | h.c)), 0x8f1bbcdcu, sha1_expand(w, i));
	UNROLL for (u32 i = 60; i < 80; i++) h =
		sha1_round(h, h.b ^ h.c ^ h.d, 0xca62c1d6u, sha1_expand(w, i));
	h.a += before.a;
	h.b += before.b;
	h.c += before.c;
	h.d += before.d;
	h.e += before.e;
	return h;
}

DEVICE struct sha1 sha1_from(GLOBAL const u32 *words)
{
	struct sha1 h;

	h.a = words[0];
	h.b = words[1];
	h.c = words[2];
	h.d = words[3];
	h.e = words[4];
	return h;
}

/*
 * End a hash that began with one block of 64 bytes, by `n` words (the padding's bit follows them)
 * at `bytes`, which is aligned to 4 bytes.
 */
DEVICE struct sha1 sha1_of(struct sha1 h, GLOBAL const u8 *bytes, u32 n)
{
	GLOBAL const u32 *words = (GLOBAL const u32 *)bytes;
	const u32 blocks = (n + 3 + 15) / 16;
	u32 w[16];

	for (u32 block = 0; block < blocks; block++) {
		UNROLL for (u32 i = 0; i < 16; i++)
		{
			const u32 at = block * 16 + i;

			w[i] = at < n ? swapped32(words[at]) : at == n ? 0x80000000u : 0;
		}
		if (block == blocks - 1)
			w[15] = (16 + n) * 32;
		h = sha1_block(h, w);
	}
	return h;
}

/* HMAC (RFC 2104) of `n` words, with the hashes of the padded keys; its first three words. */
DEVICE struct sha1 sha1_hmac(GLOBAL const u32 *inner, GLOBAL const u32 *outer,
			     GLOBAL const u8 *bytes, u32 n)
{
	const struct sha1 h = sha1_of(sha1_from(inner), bytes, n);
	u32 w[16];

	w[0] = h.a;
	w[1] = h.b;
	w[2] = h.c;
	w[3] = h.d;
	w[4] = h.e;
	w[5] = 0x80000000u;
	UNROLL for (u32 i = 6; i < 15; i++) w[i] = 0;
	w[15] = (16 + SHA1_WORDS) * 32;
	return sha1_block(sha1_from(outer), w);
}
