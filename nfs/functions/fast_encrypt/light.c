#include "functions/fast_encrypt/light.h"

#include "core/rewrite.h"

/* The sum of 16-bit words; an odd byte is followed by 0. It fits, for at most 4,096 bytes. */
static uint32_t sum_of(const uint8_t *bytes, uint32_t length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum += word;
	}
	word = 0;
	memcpy(&word, bytes, length);
	return sum + word;
}

static uint32_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

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
static void update_checksum(struct rte_mbuf *mbuf, const struct packet *packet, uint32_t before,
			    uint32_t after)
{
	rte_be16_t *checksum = checksum_of(mbuf, packet);
	const bool udp = packet->protocol == IPPROTO_UDP;

	if (udp && *checksum == 0)
		return;
	*checksum = checksum_after(*checksum, (uint16_t)~fold(before) + fold(after));
	if (udp && *checksum == 0)
		*checksum = 0xffff; /* 0 would mean no checksum (RFC 768) */
}

enum light_result light_apply(struct light *light, struct rte_mbuf *mbuf,
			      const struct packet *packet)
{
	const uint32_t most = light->blocks * CHACHA20_BLOCK;
	const uint32_t length = RTE_MIN((uint32_t)packet->payload_length, most);
	uint8_t nonce[CHACHA20_NONCE], stream[CHACHA20_BLOCK], *bytes;
	uint32_t before;

	if (packet->payload == 0 || packet->fragment || length == 0 ||
	    packet->protocol == IPPROTO_ICMP)
		return LIGHT_NOTHING;
	/* bytes of the packet itself if it is in one segment, as nearly always */
	bytes = (uint8_t *)(uintptr_t)rte_pktmbuf_read(mbuf, packet->payload, length, light->bytes);
	before = sum_of(bytes, length);
	make_nonce(nonce, packet_ipv4(mbuf, packet));
	for (uint32_t at = 0; at < length; at += CHACHA20_BLOCK) {
		chacha20_block(light->key, 1 + at / CHACHA20_BLOCK, nonce, stream);
		combine(bytes + at, stream, RTE_MIN(length - at, (uint32_t)CHACHA20_BLOCK));
	}
	if (bytes == light->bytes)
		write_back(mbuf, packet->payload, bytes, length);
	update_checksum(mbuf, packet, before, sum_of(bytes, length));
	return LIGHT_DONE;
}
