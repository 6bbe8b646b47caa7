/*
 * Encryption and integrity of IPSec by OpenSSL: AES-128 in counter mode (RFC 3686) and
 * HMAC-SHA1-96 (RFC 2404).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPSEC_IV 8
#define IPSEC_ICV 12

struct ipsec_keys {
	uint8_t cipher[16];
	uint8_t nonce[4]; /* the first bytes of every counter block */
	uint8_t hmac[20];
};

struct ipsec_cipher;

/* NULL after printing why. */
struct ipsec_cipher *ipsec_cipher_create(const char *of, const struct ipsec_keys *keys);
void ipsec_cipher_destroy(struct ipsec_cipher *cipher);

/* Encrypt or decrypt bytes in place, which is the same. False if OpenSSL fails. */
bool ipsec_crypt(struct ipsec_cipher *cipher, const uint8_t iv[IPSEC_IV], uint8_t *bytes, size_t n);
/* The integrity check value of bytes. False if OpenSSL fails. */
bool ipsec_authenticate(struct ipsec_cipher *cipher, const uint8_t *bytes, size_t n,
			uint8_t icv[IPSEC_ICV]);
