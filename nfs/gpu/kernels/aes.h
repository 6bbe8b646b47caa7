/*
 * AES-128 in counter mode (RFC 3686) by one table of 256 words, whose rotations are the other three
 * (Daemen and Rijmen). Words hold bytes in network order.
 */
#pragma once

#include "gpu/device.h"

#define AES_ROUND_KEY_WORDS 44

struct aes_block {
	u32 a, b, c, d;
};

DEVICE u32 rotated_right(u32 word, u32 bits)
{
	return word >> bits | word << (32 - bits);
}

/* A column of a round, from the bytes that row shifts bring into it. */
DEVICE u32 aes_column(GLOBAL const u32 *table, u32 a, u32 b, u32 c, u32 d, u32 key)
{
	return table[a >> 24] ^ rotated_right(table[b >> 16 & 255], 8) ^
	       rotated_right(table[c >> 8 & 255], 16) ^ rotated_right(table[d & 255], 24) ^ key;
}

/* The same of the last round, which only substitutes: the table's second byte is that of the S-box.
 */
DEVICE u32 aes_last_column(GLOBAL const u32 *table, u32 a, u32 b, u32 c, u32 d, u32 key)
{
	return ((table[a >> 24] & 0xff00) << 16 | (table[b >> 16 & 255] & 0xff00) << 8 |
		(table[c >> 8 & 255] & 0xff00) | (table[d & 255] >> 8 & 255)) ^
	       key;
}

/* Encrypt a block with the round keys `keys`. */
DEVICE struct aes_block aes_encrypted(GLOBAL const u32 *table, GLOBAL const u32 *keys,
				      struct aes_block block)
{
	u32 a = block.a ^ keys[0], b = block.b ^ keys[1], c = block.c ^ keys[2],
	    d = block.d ^ keys[3];

	for (u32 at = 4; at < 40; at += 4) {
		const u32 e = aes_column(table, a, b, c, d, keys[at]);
		const u32 f = aes_column(table, b, c, d, a, keys[at + 1]);
		const u32 g = aes_column(table, c, d, a, b, keys[at + 2]);

		d = aes_column(table, d, a, b, c, keys[at + 3]);
		a = e;
		b = f;
		c = g;
	}
	block.a = aes_last_column(table, a, b, c, d, keys[40]);
	block.b = aes_last_column(table, b, c, d, a, keys[41]);
	block.c = aes_last_column(table, c, d, a, b, keys[42]);
	block.d = aes_last_column(table, d, a, b, c, keys[43]);
	return block;
}
