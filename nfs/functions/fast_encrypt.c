/*
 * FastEncrypt: packets from inside leave as ESP by ChaCha20-Poly1305 (RFC 7634); those from outside
 * are decrypted. The other end of the link is one with `decrypt` set.
 *
 * With `blocks` it is what also fits a SmartNIC, the light mode below.
 */
#include <errno.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/rewrite.h"
#include "functions/esp/gateway.h"
#include "functions/fast_encrypt/chacha20.h"

/*
 * The light mode of FastEncrypt, which also fits a SmartNIC's few instructions: the first blocks of
 * a payload are combined with a key stream of ChaCha20 by exclusive or.
 *
 * Nothing is authenticated, and the nonce is made of the packet's headers (addresses,
 * identification, protocol): packets with equal ones have equal key streams, so that a listener
 * learns the difference of their payloads. It is a load to place and to measure, no protection. It
 * is its own inverse, and packets do not become longer.
 */

#define LIGHT_MOST_BLOCKS 64

struct light {
	uint8_t key[CHACHA20_KEY];
	unsigned int blocks;
	uint8_t bytes[LIGHT_MOST_BLOCKS * CHACHA20_BLOCK]; /* of a payload in several segments */
};

static void combine(uint8_t *bytes, const uint8_t *stream, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] ^= stream[i];
}

static void make_nonce(uint8_t nonce[CHACHA20_NONCE], const struct rte_ipv4_hdr *ip)
{
	memcpy(nonce, &ip->src_addr, sizeof(ip->src_addr));
	memcpy(nonce + 4, &ip->dst_addr, sizeof(ip->dst_addr));
	memcpy(nonce + 8, &ip->packet_id, sizeof(ip->packet_id));
	nonce[10] = ip->next_proto_id;
	nonce[11] = 0;
}

/* Put bytes back into a packet of several segments. */
static void write_back(struct rte_mbuf *segment, uint32_t at, const uint8_t *bytes, uint32_t length)
{
	for (; segment && length > 0; segment = segment->next) {
		const uint32_t here = rte_pktmbuf_data_len(segment);
		uint32_t part;

		if (at >= here) {
			at -= here;
			continue;
		}
		part = RTE_MIN(length, here - at);
		memcpy(rte_pktmbuf_mtod_offset(segment, uint8_t *, at), bytes, part);
		bytes += part;
		length -= part;
		at = 0;
	}
}

static rte_be16_t *checksum_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	size_t at = packet->l4;

	if (packet->protocol == IPPROTO_UDP)
		at += offsetof(struct rte_udp_hdr, dgram_cksum);
	else
		at += offsetof(struct rte_tcp_hdr, cksum);
	return rte_pktmbuf_mtod_offset(mbuf, rte_be16_t *, at);
}

/* The checksum after covered words with one sum were replaced by those with another one. */
static void update_checksum(struct rte_mbuf *mbuf, const struct packet *packet, uint16_t before,
			    uint16_t after)
{
	rte_be16_t *checksum = checksum_of(mbuf, packet);
	const bool udp = packet->protocol == IPPROTO_UDP;

	if (udp && *checksum == 0)
		return;
	*checksum = checksum_after(*checksum, (uint16_t)~before + (uint32_t)after);
	if (udp && *checksum == 0)
		*checksum = 0xffff; /* 0 would mean no checksum (RFC 768) */
}

/* Encrypt or decrypt a payload of UDP or TCP in place, and update its checksum. */
static bool light_apply(struct light *light, struct rte_mbuf *mbuf, const struct packet *packet)
{
	const uint32_t most = light->blocks * CHACHA20_BLOCK;
	const uint32_t length = RTE_MIN((uint32_t)packet->payload_length, most);
	uint8_t nonce[CHACHA20_NONCE], stream[CHACHA20_BLOCK], *bytes;
	uint16_t before;

	if (packet->payload == 0 || packet->fragment || length == 0 ||
	    packet->protocol == IPPROTO_ICMP)
		return false;
	/* bytes of the packet itself if it is in one segment, as nearly always */
	bytes = (uint8_t *)(uintptr_t)rte_pktmbuf_read(mbuf, packet->payload, length, light->bytes);
	before = rte_raw_cksum(bytes, length);
	make_nonce(nonce, packet_ipv4(mbuf, packet));
	for (uint32_t at = 0; at < length; at += CHACHA20_BLOCK) {
		chacha20_block(light->key, 1 + at / CHACHA20_BLOCK, nonce, stream);
		combine(bytes + at, stream, RTE_MIN(length - at, (uint32_t)CHACHA20_BLOCK));
	}
	if (bytes == light->bytes)
		write_back(mbuf, packet->payload, bytes, length);
	update_checksum(mbuf, packet, before, rte_raw_cksum(bytes, length));
	return true;
}

enum { KEY_BYTES = CHACHA20_KEY, SALT_BYTES = 4 };

enum { DECRYPTS = ESP_PARAMETERS, BLOCKS };
static const struct nf_parameter parameters[] = {
	ESP_DECLARE_PARAMETERS(""), /* the light mode passes frames, ESP drops them */
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
	if (!*nf->texts[ESP_UNKNOWN])
		nf->passes_unknown = is_light(nf);
	if (!*nf->texts[ESP_ARP])
		nf->passes_arp = is_light(nf);
	if (is_light(nf))
		return create_light(nf, bytes);
	memcpy(keys.cipher, bytes, KEY_BYTES);
	return esp_create(nf, &keys, bytes + KEY_BYTES, nf->settings[DECRYPTS] == 1);
}

static void process_light(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_headers(packets[i]);

		if (unlikely(packet.type != PACKET_IPV4)) {
			nf_other(nf, packets[i], packet.type, ESP_OTHER, out);
			continue;
		}
		nf->counters[light_apply(nf->state, packets[i], &packet) ? ESP_ENCRYPTED : PASSED]++;
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

NF_KIND("FastEncrypt", "encrypts what goes outside (ESP, ChaCha20-Poly1305), decrypts what comes "
	"back", .alters = true, .create = create, .process = process, .destroy = destroy)
