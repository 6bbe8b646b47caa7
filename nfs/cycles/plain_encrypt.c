#include "cycles/plain_esp.h"

#define BLOCK 16

static const uint8_t key[] = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
static const uint8_t mac_key[] = "\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f"
				 "\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c\x3d\x3e\x3f";

static void *create(uint32_t flows)
{
	(void)flows;
	return plain_esp_create("plain_encrypt", EVP_aes_128_cbc(), key, mac_key, true);
}

/* The initialization vector is an encrypted counter: the block before the text. */
static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	static const uint8_t zeros[BLOCK];
	struct plain_esp *esp = of;

	for (uint16_t i = 0; i < n; i++) {
		uint16_t length;
		struct rte_mbuf *made = plain_esp_wrap(esp, packets[i], BLOCK, BLOCK, &length);
		uint8_t *bytes = rte_pktmbuf_mtod_offset(made, uint8_t *, ESP_AT);
		int written;

		memset(bytes + ESP_HEADER, 0, BLOCK);
		memcpy(bytes + ESP_HEADER, &esp->sequence, sizeof(esp->sequence));
		EVP_EncryptInit_ex(esp->cipher, NULL, NULL, NULL, zeros);
		EVP_EncryptUpdate(esp->cipher, bytes + ESP_HEADER, &written, bytes + ESP_HEADER,
				  BLOCK + length);
		plain_esp_mac(esp, bytes, ESP_HEADER + BLOCK + length,
			      bytes + ESP_HEADER + BLOCK + length);
		nf_send(out, made);
	}
}

static struct peer plain = {
	.function = "Encrypt",
	.name = "OpenSSL",
	.does = "OpenSSL's EVP called for each packet: AES-128-CBC, then HMAC-SHA-256",
	.create = create,
	.process = process,
	.destroy = plain_esp_destroy,
};

PEER_REGISTER(plain)
