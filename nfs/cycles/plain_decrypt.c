#include "cycles/plain_esp.h"

static void *create(void)
{
	struct plain_esp *esp = plain_esp_create_cbc("plain_decrypt", false);
	struct nf_config config = {.name = "Encrypt"};

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
		const uint16_t length = rte_pktmbuf_data_len(packets[i]) - ESP_AT - ESP_HEADER -
					CBC_BLOCK - ESP_ICV;
		uint8_t icv[ESP_ICV];
		int written;

		plain_esp_mac(esp, bytes, ESP_HEADER + CBC_BLOCK + length, icv);
		if (memcmp(icv, bytes + ESP_HEADER + CBC_BLOCK + length, ESP_ICV) != 0) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		EVP_DecryptInit_ex(esp->cipher, NULL, NULL, NULL, bytes + ESP_HEADER);
		EVP_DecryptUpdate(esp->cipher, bytes + ESP_HEADER + CBC_BLOCK, &written,
				  bytes + ESP_HEADER + CBC_BLOCK, length);
		plain_esp_unwrap(packets[i], CBC_BLOCK);
		nf_send(out, packets[i]);
	}
}

OPENSSL_PEER("Decrypt",
	     "OpenSSL's EVP called for each packet in place: HMAC-SHA-256, then AES-128-CBC",
	     .prepare = plain_esp_seal)
