/* ChaCha20 (RFC 8439, section 2.3): blocks of a key stream, a row of the state in each vector. */
#pragma once

#include <stdint.h>
#include <string.h>

#define CHACHA20_BLOCK 64
#define CHACHA20_KEY 32
#define CHACHA20_NONCE 12

typedef uint32_t chacha20_row __attribute__((vector_size(16)));

static inline chacha20_row chacha20_rotate(chacha20_row row, int bits)
{
	return row << bits | row >> (32 - bits);
}

/* Four quarter rounds, one in each column. */
static inline void chacha20_quarters(chacha20_row rows[4])
{
	rows[0] += rows[1];
	rows[3] = chacha20_rotate(rows[3] ^ rows[0], 16);
	rows[2] += rows[3];
	rows[1] = chacha20_rotate(rows[1] ^ rows[2], 12);
	rows[0] += rows[1];
	rows[3] = chacha20_rotate(rows[3] ^ rows[0], 8);
	rows[2] += rows[3];
	rows[1] = chacha20_rotate(rows[1] ^ rows[2], 7);
}

/* Write the block with this counter. Words are in the byte order of the machine: little endian. */
static inline void chacha20_block(const uint8_t key[CHACHA20_KEY], uint32_t counter,
				  const uint8_t nonce[CHACHA20_NONCE],
				  uint8_t block[CHACHA20_BLOCK])
{
	static const chacha20_row constants = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
	chacha20_row begin[4] = {constants}, rows[4];

	memcpy(&begin[1], key, CHACHA20_KEY);
	memcpy(&begin[3], &counter, sizeof(counter));
	memcpy((uint8_t *)&begin[3] + sizeof(counter), nonce, CHACHA20_NONCE);
	memcpy(rows, begin, sizeof(rows));
	for (int i = 0; i < 10; i++) {
		chacha20_quarters(rows);
		rows[1] = __builtin_shufflevector(rows[1], rows[1], 1, 2, 3, 0);
		rows[2] = __builtin_shufflevector(rows[2], rows[2], 2, 3, 0, 1);
		rows[3] = __builtin_shufflevector(rows[3], rows[3], 3, 0, 1, 2);
		chacha20_quarters(rows);
		rows[1] = __builtin_shufflevector(rows[1], rows[1], 3, 0, 1, 2);
		rows[2] = __builtin_shufflevector(rows[2], rows[2], 2, 3, 0, 1);
		rows[3] = __builtin_shufflevector(rows[3], rows[3], 1, 2, 3, 0);
	}
	for (int i = 0; i < 4; i++)
		rows[i] += begin[i];
	memcpy(block, rows, CHACHA20_BLOCK);
}
