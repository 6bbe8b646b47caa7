/*
 * FastEncrypt: packets from inside leave as ESP by ChaCha20-Poly1305 (RFC 7634); those from outside
 * are decrypted. The other end of the link is one with `decrypt` set.
 */
#include "functions/esp/gateway.h"

enum { KEY_BYTES = 32, SALT_BYTES = 4 };

enum { DECRYPTS = ESP_PARAMETERS };
static const struct nf_parameter parameters[] = {
	ESP_DECLARE_PARAMETERS,
	[ESP_KEY] = {"key", "key and salt, 64 and 8 hexadecimal digits (RFC 7634, section 2)",
		     .text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
			     "20212223"},
	[DECRYPTS] = {"decrypt",
		      "1: packets from inside are decrypted, those from outside encrypted", 0, 1,
		      0},
};

static const struct nf_counter counters[] = {ESP_DECLARE_COUNTERS};

static int create(struct nf *nf)
{
	struct crypto_keys keys = {.algorithm = CRYPTO_CHACHA20_POLY1305};
	uint8_t bytes[KEY_BYTES + SALT_BYTES];
	const int error = esp_read_hex(nf, ESP_KEY, bytes, sizeof(bytes));

	if (error < 0)
		return error;
	memcpy(keys.cipher, bytes, KEY_BYTES);
	return esp_create(nf, &keys, bytes + KEY_BYTES, nf->settings[DECRYPTS] == 1);
}

static struct nf_kind kind = {
	.name = "FastEncrypt",
	.help = "encrypts what goes outside (ESP, ChaCha20-Poly1305), decrypts what comes back",
	.alters = true,
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.counters = counters,
	.n_counters = RTE_DIM(counters),
	.create = create,
	.process = esp_process,
	.destroy = esp_destroy,
};

NF_REGISTER(kind)
