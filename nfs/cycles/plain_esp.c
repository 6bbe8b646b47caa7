#include "cycles/plain_esp.h"

#include <stdio.h>

#include <openssl/core_names.h>

#include "core/memory.h"

struct plain_esp *plain_esp_create_cbc(const char *pool, bool encrypts)
{
	static const uint8_t key[] =
		"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
	static const uint8_t mac_key[] =
		"\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f"
		"\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c\x3d\x3e\x3f";

	return plain_esp_create(pool, EVP_aes_128_cbc(), key, mac_key, encrypts);
}

void plain_esp_destroy(void *state)
{
	struct plain_esp *esp = state;

	nf_destroy(esp->sealing);
	EVP_MAC_CTX_free(esp->mac);
	EVP_CIPHER_CTX_free(esp->cipher);
	rte_mempool_free(esp->spare);
	nf_free(esp);
}

static EVP_MAC_CTX *hmac_of(const uint8_t *key)
{
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(hmac); /* NULL without HMAC, too */
	OSSL_PARAM parameters[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};

	EVP_MAC_free(hmac);
	if (context && EVP_MAC_init(context, key, 32, parameters) != 1) {
		EVP_MAC_CTX_free(context);
		return NULL;
	}
	return context;
}

struct plain_esp *plain_esp_create(const char *pool, const EVP_CIPHER *cipher, const uint8_t *key,
				   const uint8_t *mac_key, bool encrypts)
{
	struct plain_esp *esp = nf_zalloc(sizeof(*esp));

	if (!esp)
		return NULL;
	esp->spare = rte_pktmbuf_pool_create(pool, 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					     SOCKET_ID_ANY);
	esp->cipher = EVP_CIPHER_CTX_new();
	esp->mac = mac_key ? hmac_of(mac_key) : NULL;
	if (esp->spare && esp->cipher && (!mac_key || esp->mac) &&
	    EVP_CipherInit_ex(esp->cipher, cipher, NULL, key, NULL, encrypts) == 1 &&
	    EVP_CIPHER_CTX_set_padding(esp->cipher, 0) == 1)
		return esp;
	fprintf(stderr, "cycles: cannot start OpenSSL\n");
	plain_esp_destroy(esp);
	return NULL;
}

struct rte_mbuf *plain_esp_wrap(struct plain_esp *esp, struct rte_mbuf *packet, uint16_t iv,
				uint16_t block, uint16_t *length)
{
	const uint16_t content = rte_pktmbuf_data_len(packet) - ESP_AT;
	const uint16_t text = ESP_AT + ESP_HEADER + iv;
	struct rte_mbuf *made = rte_pktmbuf_alloc(esp->spare);
	struct rte_ipv4_hdr *ip;
	rte_be32_t header[2];
	uint8_t *to, padded;

	*length = RTE_ALIGN_CEIL(content + 2, block);
	padded = (uint8_t)(*length - content - 2);
	to = (uint8_t *)rte_pktmbuf_append(made, text + *length + ESP_ICV);
	memcpy(to, rte_pktmbuf_mtod(packet, uint8_t *), ESP_AT);
	memcpy(to + text, rte_pktmbuf_mtod_offset(packet, uint8_t *, ESP_AT), content);
	ip = (struct rte_ipv4_hdr *)(to + sizeof(struct rte_ether_hdr));
	header[0] = RTE_BE32(256);
	header[1] = rte_cpu_to_be_32(++esp->sequence);
	memcpy(to + ESP_AT, header, ESP_HEADER);
	for (uint8_t i = 0; i < padded; i++)
		to[text + content + i] = i + 1;
	to[text + *length - 2] = padded;
	to[text + *length - 1] = ip->next_proto_id;
	ip->next_proto_id = IPPROTO_ESP;
	ip->total_length =
		rte_cpu_to_be_16(text + *length + ESP_ICV - sizeof(struct rte_ether_hdr));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	rte_pktmbuf_free(packet);
	return made;
}

void plain_esp_mac(struct plain_esp *esp, const uint8_t *bytes, size_t length, uint8_t icv[ESP_ICV])
{
	uint8_t whole[32];
	size_t written;

	EVP_MAC_init(esp->mac, NULL, 0, NULL);
	EVP_MAC_update(esp->mac, bytes, length);
	EVP_MAC_final(esp->mac, whole, &written, sizeof(whole));
	memcpy(icv, whole, ESP_ICV);
}

void plain_esp_unwrap(struct rte_mbuf *packet, uint16_t iv)
{
	uint8_t *bytes = rte_pktmbuf_mtod(packet, uint8_t *);
	const uint8_t *tail = bytes + rte_pktmbuf_data_len(packet) - ESP_ICV - 2;
	const uint8_t next = tail[1];
	struct rte_ipv4_hdr *ip;

	rte_pktmbuf_trim(packet, tail[0] + 2 + ESP_ICV);
	memmove(bytes + ESP_HEADER + iv, bytes, ESP_AT);
	rte_pktmbuf_adj(packet, ESP_HEADER + iv);
	ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
	ip->next_proto_id = next;
	ip->total_length =
		rte_cpu_to_be_16(rte_pktmbuf_data_len(packet) - sizeof(struct rte_ether_hdr));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

uint16_t plain_esp_seal(void *state, struct rte_mbuf **packets, uint16_t n)
{
	static struct nf_out out;
	struct plain_esp *esp = state;

	out.n = 0;
	nf_process(esp->sealing, packets, n, &out);
	memcpy(packets, out.packets, out.n * sizeof(*packets));
	return (uint16_t)out.n;
}
