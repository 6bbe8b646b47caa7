/*
 * FastEncrypt: packets from inside leave as ESP by ChaCha20-Poly1305 (RFC 7634); those from outside
 * are decrypted. The other end of the link is one with `decrypt` set.
 *
 * With `blocks` it is what also fits a SmartNIC: see functions/fast_encrypt/light.h.
 */
#include <errno.h>

#include "core/memory.h"
#include "functions/esp/gateway.h"
#include "functions/fast_encrypt/light.h"

enum { KEY_BYTES = CHACHA20_KEY, SALT_BYTES = 4 };

enum { DECRYPTS = ESP_PARAMETERS, BLOCKS };
static const struct nf_parameter parameters[] = {
	ESP_DECLARE_PARAMETERS,
	[ESP_KEY] = {"key", "key and salt, 64 and 8 hexadecimal digits (RFC 7634, section 2)",
		     .text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
			     "20212223"},
	[DECRYPTS] = {"decrypt",
		      "1: packets from inside are decrypted, those from outside encrypted", 0, 1,
		      0},
	[BLOCKS] = {"blocks",
		    "the light mode: blocks of 64 bytes of a payload that are encrypted in place, "
		    "unauthenticated; 0: ESP",
		    0, LIGHT_MOST_BLOCKS, 0},
};

enum { PASSED = ESP_COUNTERS };
static const struct nf_counter counters[] = {
	ESP_DECLARE_COUNTERS,
	[PASSED] = {"passed", "packets without a payload to encrypt, sent on by the light mode"},
};

static bool is_light(const struct nf *nf)
{
	return nf->settings[BLOCKS] > 0;
}

static int create_light(struct nf *nf, const uint8_t *key)
{
	struct light *light = nf_zalloc_for(nf->kind->name, sizeof(*light));

	if (!light)
		return -ENOMEM;
	memcpy(light->key, key, sizeof(light->key));
	light->blocks = (unsigned int)nf->settings[BLOCKS];
	nf->state = light;
	return 0;
}

static int create(struct nf *nf)
{
	struct crypto_keys keys = {.algorithm = CRYPTO_CHACHA20_POLY1305};
	uint8_t bytes[KEY_BYTES + SALT_BYTES];
	const int error = esp_read_hex(nf, ESP_KEY, bytes, sizeof(bytes));

	if (error < 0)
		return error;
	if (is_light(nf))
		return create_light(nf, bytes);
	memcpy(keys.cipher, bytes, KEY_BYTES);
	return esp_create(nf, &keys, bytes + KEY_BYTES, nf->settings[DECRYPTS] == 1);
}

static void process_light(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_headers(packets[i]);

		if (unlikely(packet.type == PACKET_MALFORMED)) {
			nf->counters[ESP_MALFORMED_PACKETS]++;
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		if (light_apply(nf->state, packets[i], &packet) == LIGHT_DONE)
			nf->counters[ESP_ENCRYPTED]++;
		else
			nf->counters[PASSED]++;
		nf_send(out, packets[i]);
	}
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	if (is_light(nf))
		process_light(nf, packets, n, out);
	else
		esp_process(nf, packets, n, out);
}

static void destroy(struct nf *nf)
{
	if (is_light(nf))
		nf_free(nf->state);
	else
		esp_destroy(nf);
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
	.process = process,
	.destroy = destroy,
};

NF_REGISTER(kind)
