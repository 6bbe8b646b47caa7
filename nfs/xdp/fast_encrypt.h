/*
 * FastEncrypt(blocks): exclusive or of the first blocks of a UDP or TCP payload with the keystream
 * of ChaCha20 (RFC 8439), which emulates what fits a card. Not authenticated; its own inverse.
 *
 * The nonce is source and destination address, the IPv4 identification, the protocol and 0; blocks
 * count from 1. Fragments, and packets without such a payload, pass.
 */
#pragma once

#include "xdp/checksum.h"

#define BLOCK_WORDS 16
#define BLOCK_BYTES 64
#define KEY_WORDS 8

static __always_inline __u32 rotated(__u32 word, int bits)
{
	return word << bits | word >> (32 - bits);
}

static __always_inline void quarter_round(__u32 *a, __u32 *b, __u32 *c, __u32 *d)
{
	*a += *b;
	*d = rotated(*d ^ *a, 16);
	*c += *d;
	*b = rotated(*b ^ *c, 12);
	*a += *b;
	*d = rotated(*d ^ *a, 8);
	*c += *d;
	*b = rotated(*b ^ *c, 7);
}

/* Twenty rounds, a column round and a diagonal round at a time. */
static __always_inline void twenty_rounds(__u32 *x)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < 10; i++) {
		quarter_round(&x[0], &x[4], &x[8], &x[12]);
		quarter_round(&x[1], &x[5], &x[9], &x[13]);
		quarter_round(&x[2], &x[6], &x[10], &x[14]);
		quarter_round(&x[3], &x[7], &x[11], &x[15]);
		quarter_round(&x[0], &x[5], &x[10], &x[15]);
		quarter_round(&x[1], &x[6], &x[11], &x[12]);
		quarter_round(&x[2], &x[7], &x[8], &x[13]);
		quarter_round(&x[3], &x[4], &x[9], &x[14]);
	}
}

/* The keystream of a block; the machine is little-endian, as ChaCha20's words are. */
static __always_inline void keystream(__u32 *stream, const __u32 *key, __u32 counter,
				      const struct iphdr *ip)
{
	const __u32 begin[BLOCK_WORDS] = {
		0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,
		key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
		counter, ip->saddr, ip->daddr, ip->id | (__u32)ip->protocol << 16,
	};

#pragma clang loop unroll(full)
	for (int i = 0; i < BLOCK_WORDS; i++)
		stream[i] = begin[i];
	twenty_rounds(stream);
#pragma clang loop unroll(full)
	for (int i = 0; i < BLOCK_WORDS; i++)
		stream[i] += begin[i];
}

/* Byte `i` of the last word, which is incomplete. */
static __always_inline void xor_byte(__u8 *bytes, __u32 i, __u32 stream, __u32 *before,
				     __u32 *after)
{
	*before |= (__u32)bytes[i] << 8 * i;
	bytes[i] ^= (__u8)(stream >> 8 * i);
	*after |= (__u32)bytes[i] << 8 * i;
}

/* The last `n` bytes of a payload, at most 3, summed as a word padded with zeros. */
static __always_inline __u64 xor_rest(__u8 *bytes, __u32 n, __u32 stream, const void *end)
{
	__u32 before = 0, after = 0;

	if (n >= 1 && (void *)(bytes + 1) <= end)
		xor_byte(bytes, 0, stream, &before, &after);
	if (n >= 2 && (void *)(bytes + 2) <= end)
		xor_byte(bytes, 1, stream, &before, &after);
	if (n == 3 && (void *)(bytes + 3) <= end)
		xor_byte(bytes, 2, stream, &before, &after);
	return word_change(before, after);
}

/* Exclusive or of at most a block with the keystream; returns the change of the checksum. */
static __always_inline __u64 xor_block(void *payload, __u32 length, const __u32 *stream,
				       const void *end)
{
	__u32 *words = payload, rest = 0;
	__u64 changes = 0;

#pragma clang loop unroll(full)
	for (__u32 i = 0; i < BLOCK_WORDS; i++) {
		__u32 before;

		if (length < 4 * (i + 1) || (void *)(words + 1) > end) {
			rest = stream[i];
			break;
		}
		before = *words;
		*words = before ^ stream[i];
		changes += word_change(before, *words);
		words++;
	}
	if (length < BLOCK_BYTES)
		changes += xor_rest((__u8 *)words, length & 3, rest, end);
	return changes;
}

/* `blocks` is a constant: the loop is unrolled. */
static __always_inline bool fast_encrypt(struct xdp_md *ctx, const __u32 *key, __u32 blocks)
{
	const struct headers headers = read_headers(ctx);
	__u32 stream[BLOCK_WORDS];
	__u64 changes = 0;

	if (headers.type != PACKET_IPV4)
		return headers.type != PACKET_MALFORMED;
	if (headers.fragment || !has_ports(&headers) || headers.payload_length == 0)
		return true;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < blocks; i++) {
		if (headers.payload_length <= i * BLOCK_BYTES)
			break;
		keystream(stream, key, 1 + i, headers.ip);
		changes += xor_block(headers.payload + i * BLOCK_BYTES,
				     headers.payload_length - i * BLOCK_BYTES, stream,
				     packet_end(ctx));
	}
	change_l4_checksum(&headers, changes);
	return true;
}
