#include "cycles/plain_esp.h"

#define BLOCK 16

static const uint8_t key[] = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
static const uint8_t mac_key[] = "\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f"
				 "\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c\x3d\x3e\x3f";

static void *create(uint32_t flows)
{
	struct plain_esp *esp =
		plain_esp_create("plain_decrypt", EVP_aes_128_cbc(), key, mac_key, false);
	struct nf_config config = {.name = "Encrypt"};

	(void)flows;
	if (!esp)
		return NULL;
	config.spare = esp->spare;
	esp->sealing = nf_create(&config, NULL, 0);
	if (esp->sealing)
		return esp;
	plain_esp_destroy(esp);
	return NULL;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct plain_esp *esp = of;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t *bytes = rte_pktmbuf_mtod_offset(packets[i], uint8_t *, ESP_AT);
		const uint16_t length =
			rte_pktmbuf_data_len(packets[i]) - ESP_AT - ESP_HEADER - BLOCK - ESP_ICV;
		uint8_t icv[ESP_ICV];
		int written;

		plain_esp_mac(esp, bytes, ESP_HEADER + BLOCK + length, icv);
		if (memcmp(icv, bytes + ESP_HEADER + BLOCK + length, ESP_ICV) != 0) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		EVP_DecryptInit_ex(esp->cipher, NULL, NULL, NULL, bytes + ESP_HEADER);
		EVP_DecryptUpdate(esp->cipher, bytes + ESP_HEADER + BLOCK, &written,
				  bytes + ESP_HEADER + BLOCK, length);
		plain_esp_unwrap(packets[i], BLOCK);
		nf_send(out, packets[i]);
	}
}

static struct peer plain = {
	.function = "Decrypt",
	.name = "OpenSSL",
	.does = "OpenSSL's EVP called for each packet in place: HMAC-SHA-256, then AES-128-CBC",
	.create = create,
	.prepare = plain_esp_seal,
	.process = process,
	.destroy = plain_esp_destroy,
};

PEER_REGISTER(plain)
