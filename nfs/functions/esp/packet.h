/*
 * ESP packets in transport mode (RFC 4303, section 3.1.1): what follows the IPv4 header is
 * encrypted behind an ESP header, itself in UDP if wanted (RFC 3948, section 3.1).
 */
#pragma once

#include <rte_esp.h>

#include "core/packet.h"
#include "functions/esp/crypto.h"

#define ESP_UDP_PORT 4500

/* How packets look, by the algorithm and the function's settings. */
struct esp_format {
	uint8_t iv, icv; /* bytes */
	uint8_t block;   /* bytes of which the encrypted part is a multiple */
	bool in_udp;
};

/* Where the parts of an ESP packet are. */
struct esp_parts {
	uint16_t esp;    /* offset of the ESP header */
	uint16_t text;   /* offset of the encrypted part */
	uint16_t length; /* of the encrypted part */
};

/*
 * A copy of a packet with an ESP header and room for what encryption fills in; its sequence number
 * and initialization vector are not set yet. NULL without a buffer or if it does not fit one, which
 * sets `*too_long`.
 */
struct rte_mbuf *esp_wrap(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			  const struct packet *packet, const struct esp_format *format,
			  uint32_t spi, struct esp_parts *parts, bool *too_long);

enum esp_kind { ESP_OURS, ESP_FOREIGN, ESP_MALFORMED };

/* Find the parts of an ESP packet of an association. */
enum esp_kind esp_find(struct rte_mbuf *mbuf, const struct packet *packet,
		       const struct esp_format *format, uint32_t spi, uint32_t *sequence,
		       struct esp_parts *parts);

/* A copy of an ESP packet without its frame's padding; NULL as above. */
struct rte_mbuf *esp_copy(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			  const struct packet *packet, bool *too_long);

enum esp_content { ESP_CONTENT, ESP_DUMMY, ESP_GARBLED };

/* Remove ESP from a decrypted packet: its padding must be as the sender writes it. */
enum esp_content esp_unwrap(struct rte_mbuf *mbuf, uint16_t l3, const struct esp_format *format,
			    const struct esp_parts *parts);

static inline struct rte_esp_hdr *esp_header(struct rte_mbuf *mbuf, const struct esp_parts *parts)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_esp_hdr *, parts->esp);
}
