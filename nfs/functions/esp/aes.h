/* What Encrypt and Decrypt share: ESP by AES-128-CBC with HMAC-SHA-256-128. */
#pragma once

#include "functions/esp/gateway.h"

enum { ESP_HMAC_KEY = ESP_PARAMETERS };
#define ESP_AES_PARAMETERS                                                                         \
	ESP_DECLARE_PARAMETERS("drop"),                                                            \
		[ESP_KEY] = {"key", "key of AES, 32 hexadecimal digits",                           \
			     .text = "000102030405060708090a0b0c0d0e0f"},                          \
		[ESP_HMAC_KEY] = {"hmac_key",                                                      \
				  "key of HMAC, 64 hexadecimal digits; empty: no integrity, "      \
				  "which RFC 8221 forbids",                                        \
				  .text = "202122232425262728292a2b2c2d2e2f"                       \
					  "303132333435363738393a3b3c3d3e3f"}

/* 0, or a negative errno after printing why. */
static inline int esp_aes_create(struct nf *nf, bool reversed)
{
	static const uint8_t no_salt[4];
	const bool integrity = nf->texts[ESP_HMAC_KEY][0] != '\0';
	struct crypto_keys keys = {.algorithm = integrity ? CRYPTO_AES_CBC_HMAC : CRYPTO_AES_CBC};
	int error = esp_read_hex(nf, ESP_KEY, keys.cipher, 16);

	if (error == 0 && integrity)
		error = esp_read_hex(nf, ESP_HMAC_KEY, keys.hmac, sizeof(keys.hmac));
	return error < 0 ? error : esp_create(nf, &keys, no_salt, reversed);
}
