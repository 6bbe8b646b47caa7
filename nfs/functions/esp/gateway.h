/*
 * One end of an ESP link: parameters, counters and processing of the functions that encrypt and
 * decrypt.
 *
 * The link is between two functions of a chain. One encrypts what goes outside and decrypts what
 * comes back, the other one reverses that. Packets are those of RFC 4303 in transport mode, with a
 * security association for each direction: they share keys, and their SPIs follow each other.
 *
 * Not implemented: IPv6, fragments (freed, counted; transport mode is for whole datagrams, section
 * 3.3.4), key exchange, extended sequence numbers, checksums of what NAT has translated on the link
 * (RFC 3948, section 3.1.2). The link's two ends must not share keys and seed with another link.
 */
#pragma once

#include "core/nf.h"
#include "functions/esp/crypto.h"

/* Parameters of every such function; declared first. */
enum {
	ESP_KEY,
	ESP_SPI,
	ESP_SEED,
	ESP_REPLAY_WINDOW,
	ESP_IN_UDP,
	ESP_DRIVER,
	ESP_UNKNOWN,
	ESP_ARP,
	ESP_PARAMETERS,
};
#define ESP_DECLARE_PARAMETERS(unknown)                                                            \
	[ESP_SPI] = {"spi", "SPI of packets to outside; of those to inside: one more", 256,        \
		     4294967294, 256},                                                             \
	[ESP_SEED] = {"seed",                                                                      \
		      "seed of initialization vectors; links with the same key need "              \
		      "different ones",                                                            \
		      0, 4294967295, 1},                                                           \
	[ESP_REPLAY_WINDOW] = {"replay_window",                                                    \
			       "sequence numbers that may arrive late; 0: replays pass", 0, 64,    \
			       0},                                                                 \
	[ESP_IN_UDP] = {"in_udp", "1: ESP in UDP, port 4500 (RFC 3948), which NAT translates", 0,  \
			1, 0},                                                                     \
	[ESP_DRIVER] = {"driver", "driver of DPDK's cryptodev; empty: the fastest that works",     \
			.text = ""},                                                               \
	NF_OTHER_PARAMETERS(ESP_UNKNOWN, unknown, unknown)

/* Counters of every such function. */
enum {
	ESP_ENCRYPTED,
	ESP_DECRYPTED,
	ESP_UNAUTHENTIC,
	ESP_GARBLED_PACKETS,
	ESP_REPLAYED,
	ESP_FOREIGN_PACKETS,
	ESP_DUMMIES,
	ESP_FRAGMENTS,
	ESP_EXHAUSTED,
	ESP_TOO_LONG,
	ESP_NO_BUFFER,
	ESP_OTHER, /* NF_OTHER_COUNTERS from here */
	ESP_MALFORMED_PACKETS = ESP_OTHER + 2,
	ESP_COUNTERS,
};
#define ESP_DECLARE_COUNTERS                                                                       \
	[ESP_ENCRYPTED] = {"encrypted", "packets encrypted"},                                      \
	[ESP_DECRYPTED] = {"decrypted", "packets decrypted"},                                      \
	[ESP_UNAUTHENTIC] = {"unauthentic", "packets with a wrong integrity check value, freed"},  \
	[ESP_GARBLED_PACKETS] = {"garbled", "decrypted packets with wrong padding, freed"},        \
	[ESP_REPLAYED] = {"replayed", "packets received before or too late, freed"},               \
	[ESP_FOREIGN_PACKETS] = {"foreign",                                                        \
				 "packets to decrypt that are not ESP of this link, freed"},       \
	[ESP_DUMMIES] = {"dummies", "dummy packets, freed (RFC 4303, section 2.6)"},               \
	[ESP_FRAGMENTS] = {"fragments", "fragments, freed"},                                       \
	[ESP_EXHAUSTED] = {"exhausted", "packets beyond the last sequence number, freed"},         \
	[ESP_TOO_LONG] = {"too_long", "packets that do not fit a buffer, freed"},                  \
	[ESP_NO_BUFFER] = {"no_buffer", "packets freed without a buffer"},                         \
	NF_OTHER_COUNTERS(ESP_OTHER)

/*
 * Read `length` bytes from the hexadecimal digits of a text parameter. 0, or a negative errno after
 * printing why.
 */
int esp_read_hex(const struct nf *nf, unsigned int parameter, uint8_t *bytes, size_t length);

/*
 * An end that encrypts what comes from inside, or from outside if `reversed`; `salt` is put before
 * each initialization vector of ChaCha20-Poly1305 (RFC 7634, section 2).
 */
int esp_create(struct nf *nf, const struct crypto_keys *keys, const uint8_t salt[4], bool reversed);
void esp_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
void esp_destroy(struct nf *nf);
