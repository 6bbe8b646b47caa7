#include "functions/ipsec/tunnel.h"

#include <string.h>

#define OUTER sizeof(struct rte_ipv4_hdr)

/* The outer header of a packet of `total` bytes (RFC 4301, section 5.1.2.1; RFC 6040). */
static struct rte_ipv4_hdr outer_of(const struct rte_ipv4_hdr *inner, enum nf_side from,
				    const struct ipsec_settings *settings, uint32_t total,
				    uint32_t sequence)
{
	const rte_be16_t unfragmented = inner->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	struct rte_ipv4_hdr outer = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = inner->type_of_service,
		.total_length = rte_cpu_to_be_16((uint16_t)total),
		.packet_id = unfragmented ? 0 : rte_cpu_to_be_16((uint16_t)sequence),
		.fragment_offset = unfragmented,
		.time_to_live = IPSEC_TTL,
		.next_proto_id = IPPROTO_ESP,
		.src_addr = rte_cpu_to_be_32(settings->ends[from]),
		.dst_addr = rte_cpu_to_be_32(settings->ends[!from]),
	};

	outer.hdr_checksum = rte_ipv4_cksum(&outer);
	return outer;
}

static void copy(struct rte_mbuf *mbuf, uint32_t at, uint32_t n, void *to)
{
	const void *from = rte_pktmbuf_read(mbuf, at, n, to);

	if (from != to)
		memcpy(to, from, n);
}

/* Write the padding and the tail behind `content` bytes. */
static void pad(uint8_t *padding, uint32_t length, uint32_t content)
{
	const uint8_t padded = (uint8_t)(length - content - sizeof(struct rte_esp_tail));

	for (uint8_t i = 0; i < padded; i++)
		padding[i] = i + 1;
	padding[padded] = padded;
	padding[padded + 1] = IPPROTO_IPIP;
}

/* A buffer of `length` bytes; see tunnel_wrap(). */
static struct rte_mbuf *begin(struct rte_mempool *pool, uint32_t length, bool *too_long)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;

	*too_long = made && length > rte_pktmbuf_tailroom(made);
	if (*too_long) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	if (made)
		rte_pktmbuf_append(made, (uint16_t)length);
	return made;
}

struct rte_mbuf *tunnel_wrap(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			     const struct packet *packet, const struct ipsec_settings *settings,
			     uint32_t sequence, struct esp_parts *parts, bool *too_long)
{
	const struct rte_ipv4_hdr *inner = packet_ipv4(mbuf, packet);
	const uint32_t content = rte_be_to_cpu_16(inner->total_length);
	const uint32_t length = RTE_ALIGN_CEIL(content + sizeof(struct rte_esp_tail), 4);
	const uint16_t l3 = packet->l3, esp = l3 + OUTER;
	const uint16_t text = esp + sizeof(struct rte_esp_hdr) + IPSEC_IV;
	struct rte_mbuf *made = begin(pool, text + length + IPSEC_ICV, too_long);
	struct rte_ipv4_hdr outer;
	uint8_t *bytes;

	if (!made)
		return NULL;
	metadata_inherit(made, mbuf);
	bytes = rte_pktmbuf_mtod(made, uint8_t *);
	outer = outer_of(inner, packet_from(mbuf), settings, rte_pktmbuf_data_len(made) - l3,
			 sequence);
	*parts = (struct esp_parts){.esp = esp, .text = text, .length = (uint16_t)length};
	copy(mbuf, 0, l3, bytes);
	memcpy(bytes + l3, &outer, sizeof(outer));
	esp_header(made, parts)->spi = rte_cpu_to_be_32(settings->spi + packet_from(mbuf));
	copy(mbuf, l3, content, bytes + text);
	pad(bytes + text + content, length, content);
	return made;
}

bool tunnel_unwrap(struct rte_mbuf *mbuf, uint16_t l3)
{
	struct rte_ipv4_hdr *outer = rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, l3);
	const uint16_t header = rte_ipv4_hdr_len(outer);
	uint8_t *start = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct packet inner;

	if (outer->next_proto_id != IPPROTO_IPIP)
		return false;
	memmove(start + header, start, l3);
	rte_pktmbuf_adj(mbuf, header);
	inner = packet_parse_any(mbuf);
	if (!packet_has_ipv4(&inner))
		return false;
	rte_pktmbuf_trim(mbuf, rte_pktmbuf_data_len(mbuf) - l3 -
				       rte_be_to_cpu_16(packet_ipv4(mbuf, &inner)->total_length));
	return true;
}
