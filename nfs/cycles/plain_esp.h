/* OpenSSL's EVP for packets that are ESP in transport mode, shared by the plain loops of ESP. */
#pragma once

#include <openssl/evp.h>

#include "core/packet.h"
#include "cycles/peer.h"

#define ESP_AT (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))
#define ESP_HEADER 8
#define ESP_ICV 16
#define CBC_BLOCK 16

struct plain_esp {
	struct rte_mempool *spare;
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mac; /* NULL if the cipher has its own integrity */
	uint32_t sequence;
	struct nf *sealing; /* makes of the traffic what is decrypted */
};

/*
 * State with a cipher's key and, unless NULL, one of HMAC-SHA-256, as by the functions' defaults.
 * NULL after printing why.
 */
struct plain_esp *plain_esp_create(const char *pool, const EVP_CIPHER *cipher, const uint8_t *key,
				   const uint8_t *mac_key, bool encrypts);
/* The same for AES-128-CBC. */
struct plain_esp *plain_esp_create_cbc(const char *pool, bool encrypts);
void plain_esp_destroy(void *state);

/* A packet with the headers of `packet`, and ESP around `length` bytes behind its IPv4 header. */
struct rte_mbuf *plain_esp_wrap(struct plain_esp *esp, struct rte_mbuf *packet, uint16_t iv,
				uint16_t block, uint16_t *length);

/* HMAC-SHA-256-128 of `length` bytes. */
void plain_esp_mac(struct plain_esp *esp, const uint8_t *bytes, size_t length,
		   uint8_t icv[ESP_ICV]);

/* Remove ESP from a decrypted packet. */
void plain_esp_unwrap(struct rte_mbuf *packet, uint16_t iv);

/* Encrypt the traffic's packets by the network function of `state`. */
uint16_t plain_esp_seal(void *state, struct rte_mbuf **packets, uint16_t n);

#define OPENSSL_PEER(of, text, ...)                                                                \
	static struct peer plain = {                                                               \
		.function = of,                                                                    \
		.name = "OpenSSL",                                                                 \
		.does = text,                                                                      \
		.create = create,                                                                  \
		.process = process,                                                                \
		.destroy = plain_esp_destroy,                                                      \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	PEER_REGISTER(plain)
