#include "cycles/plain_esp.h"

#define IV 8
#define BLOCK 4

static const uint8_t key[] = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
			     "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";

static void *create(void)
{
	return plain_esp_create("plain_fast_encrypt", EVP_chacha20_poly1305(), key, NULL, true);
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct plain_esp *esp = of;
	uint8_t nonce[] = {0x20, 0x21, 0x22, 0x23, 0, 0, 0, 0, 0, 0, 0, 0};

	for (uint16_t i = 0; i < n; i++) {
		uint16_t length;
		struct rte_mbuf *made = plain_esp_wrap(esp, packets[i], IV, BLOCK, &length);
		uint8_t *bytes = rte_pktmbuf_mtod_offset(made, uint8_t *, ESP_AT);
		uint8_t *text = bytes + ESP_HEADER + IV;
		int written;

		memcpy(nonce + 4, &esp->sequence, sizeof(esp->sequence));
		memcpy(bytes + ESP_HEADER, nonce + 4, IV);
		EVP_EncryptInit_ex(esp->cipher, NULL, NULL, NULL, nonce);
		EVP_EncryptUpdate(esp->cipher, NULL, &written, bytes, ESP_HEADER);
		EVP_EncryptUpdate(esp->cipher, text, &written, text, length);
		EVP_EncryptFinal_ex(esp->cipher, text + length, &written);
		EVP_CIPHER_CTX_ctrl(esp->cipher, EVP_CTRL_AEAD_GET_TAG, ESP_ICV, text + length);
		nf_send(out, made);
	}
}

OPENSSL_PEER("FastEncrypt", "OpenSSL's EVP called for each packet: ChaCha20-Poly1305")
