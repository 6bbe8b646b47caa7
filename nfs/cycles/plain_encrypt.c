#include "cycles/plain_esp.h"

static void *create(void)
{
	return plain_esp_create_cbc("plain_encrypt", true);
}

/* The initialization vector is an encrypted counter: the block before the text. */
static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	static const uint8_t zeros[CBC_BLOCK];
	struct plain_esp *esp = of;

	for (uint16_t i = 0; i < n; i++) {
		uint16_t length;
		struct rte_mbuf *made =
			plain_esp_wrap(esp, packets[i], CBC_BLOCK, CBC_BLOCK, &length);
		uint8_t *bytes = rte_pktmbuf_mtod_offset(made, uint8_t *, ESP_AT);
		int written;

		memset(bytes + ESP_HEADER, 0, CBC_BLOCK);
		memcpy(bytes + ESP_HEADER, &esp->sequence, sizeof(esp->sequence));
		EVP_EncryptInit_ex(esp->cipher, NULL, NULL, NULL, zeros);
		EVP_EncryptUpdate(esp->cipher, bytes + ESP_HEADER, &written, bytes + ESP_HEADER,
				  CBC_BLOCK + length);
		plain_esp_mac(esp, bytes, ESP_HEADER + CBC_BLOCK + length,
			      bytes + ESP_HEADER + CBC_BLOCK + length);
		nf_send(out, made);
	}
}

OPENSSL_PEER("Encrypt", "OpenSSL's EVP called for each packet: AES-128-CBC, then HMAC-SHA-256")
