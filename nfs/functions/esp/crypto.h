/*
 * Encrypts and decrypts bytes of packets with a software device of DPDK's cryptodev.
 *
 * Each instance has a device of its own, so that instances on several cores share nothing. A burst
 * of jobs runs at once: drivers that work on several packets in parallel get as many as there are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "core/nf.h"

#define CRYPTO_MOST_IV 16
#define CRYPTO_ICV 16 /* bytes of the integrity check value */

enum crypto_algorithm {
	CRYPTO_AES_CBC,          /* AES-128 in CBC mode without integrity */
	CRYPTO_AES_CBC_HMAC,     /* the same with HMAC-SHA-256-128 (RFC 4868) */
	CRYPTO_CHACHA20_POLY1305 /* RFC 8439 */
};

struct crypto_keys {
	enum crypto_algorithm algorithm;
	uint8_t cipher[32]; /* 16 bytes of AES, 32 of ChaCha20 */
	uint8_t hmac[32];
};

/* Bytes to encrypt or decrypt in place. */
struct crypto_job {
	struct rte_mbuf *packet; /* of one segment */
	uint16_t header;         /* offset of the first authenticated byte */
	uint16_t text;           /* offset of the first byte to encrypt or decrypt */
	uint16_t length;         /* bytes from there on; the integrity check value follows them */
	bool encrypts;
	uint8_t iv[CRYPTO_MOST_IV]; /* 16 bytes of AES, 12 of ChaCha20 */
	bool succeeded;             /* set by crypto_run() */
};

/* Bytes before the text that ChaCha20-Poly1305 authenticates: the ESP header. */
#define CRYPTO_HEADER 8

struct crypto;

/*
 * A device for the keys; by the named driver, or by the first that works if the name is empty. NULL
 * after printing why in the name of `name`.
 */
struct crypto *crypto_create(const char *name, const char *driver, const struct crypto_keys *keys);
void crypto_destroy(struct crypto *crypto);

/* Run up to NF_BURST jobs and wait for them. */
void crypto_run(struct crypto *crypto, struct crypto_job *jobs, uint16_t n);
