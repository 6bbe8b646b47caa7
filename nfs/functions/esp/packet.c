#include "functions/esp/packet.h"

#include "core/metadata.h"

/* Behind the IPv4 header, before the encrypted part. */
static uint16_t overhead(const struct esp_format *format)
{
	return (format->in_udp ? sizeof(struct rte_udp_hdr) : 0) + sizeof(struct rte_esp_hdr) +
	       format->iv;
}

/* Set the length and protocol of an IPv4 packet. */
static void set_header(struct rte_ipv4_hdr *ip, uint16_t length, uint8_t protocol)
{
	const rte_be16_t total = rte_cpu_to_be_16(length);
	const rte_be16_t was = rte_cpu_to_be_16(ip->time_to_live << 8 | ip->next_proto_id);
	const rte_be16_t is = rte_cpu_to_be_16(ip->time_to_live << 8 | protocol);

	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, ip->total_length, total);
	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, was, is);
	ip->total_length = total;
	ip->next_proto_id = protocol;
}

static uint32_t end_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return packet->l3 + rte_be_to_cpu_16(packet_ipv4(mbuf, packet)->total_length);
}

/* A packet with `length` bytes, of which the first `copied` are those of `mbuf`. */
static struct rte_mbuf *begin(struct rte_mempool *pool, struct rte_mbuf *mbuf, uint32_t copied,
			      uint32_t length, bool *too_long)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;

	*too_long = false;
	if (!made)
		return NULL;
	*too_long = length > rte_pktmbuf_tailroom(made);
	if (*too_long) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	packet_copy(mbuf, 0, copied, rte_pktmbuf_append(made, (uint16_t)length));
	metadata_inherit(made, mbuf);
	return made;
}

/* Write headers and padding of an ESP packet around its content. */
static void add_headers(struct rte_mbuf *made, const struct packet *packet,
			const struct esp_format *format, uint32_t spi,
			const struct esp_parts *parts, uint16_t content)
{
	struct rte_ipv4_hdr *ip = packet_ipv4(made, packet);
	const uint16_t behind = packet->l3 + rte_ipv4_hdr_len(ip);
	uint8_t *bytes = rte_pktmbuf_mtod(made, uint8_t *);
	uint8_t *padding = bytes + parts->text + content;
	const uint8_t padded = (uint8_t)(parts->length - content - sizeof(struct rte_esp_tail));

	if (format->in_udp)
		*(struct rte_udp_hdr *)(bytes + behind) = (struct rte_udp_hdr){
			.src_port = RTE_BE16(ESP_UDP_PORT),
			.dst_port = RTE_BE16(ESP_UDP_PORT),
			.dgram_len = rte_cpu_to_be_16(rte_pktmbuf_data_len(made) - behind),
		};
	esp_header(made, parts)->spi = rte_cpu_to_be_32(spi);
	for (uint8_t i = 0; i < padded; i++)
		padding[i] = i + 1;
	padding[padded] = padded;
	padding[padded + 1] = ip->next_proto_id;
	set_header(ip, rte_pktmbuf_data_len(made) - packet->l3,
		   format->in_udp ? IPPROTO_UDP : IPPROTO_ESP);
}

struct rte_mbuf *esp_wrap(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			  const struct packet *packet, const struct esp_format *format,
			  uint32_t spi, struct esp_parts *parts, bool *too_long)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const uint16_t behind = packet->l3 + rte_ipv4_hdr_len(ip);
	const uint32_t end = end_of(mbuf, packet);
	const uint32_t text = behind + overhead(format);
	const uint32_t length =
		RTE_ALIGN_CEIL(end - behind + sizeof(struct rte_esp_tail), format->block);
	struct rte_mbuf *made = begin(pool, mbuf, behind, text + length + format->icv, too_long);

	if (!made)
		return NULL;
	*parts = (struct esp_parts){
		.esp = (uint16_t)text - format->iv - sizeof(struct rte_esp_hdr),
		.text = (uint16_t)text,
		.length = (uint16_t)length,
	};
	packet_copy(mbuf, behind, end - behind, rte_pktmbuf_mtod_offset(made, uint8_t *, text));
	add_headers(made, packet, format, spi, parts, (uint16_t)(end - behind));
	return made;
}

enum esp_kind esp_find(struct rte_mbuf *mbuf, const struct packet *packet,
		       const struct esp_format *format, uint32_t spi, uint32_t *sequence,
		       struct esp_parts *parts)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const uint16_t behind = packet->l3 + rte_ipv4_hdr_len(ip);
	const uint32_t end = end_of(mbuf, packet);
	const uint32_t text = behind + overhead(format);
	uint8_t bytes[sizeof(struct rte_udp_hdr) + sizeof(struct rte_esp_hdr)];
	const uint16_t headers = overhead(format) - format->iv;
	const struct rte_udp_hdr *udp;
	const struct rte_esp_hdr *esp;

	if (ip->next_proto_id != (format->in_udp ? IPPROTO_UDP : IPPROTO_ESP))
		return ESP_FOREIGN;
	if (end < behind + headers)
		return ESP_MALFORMED;
	udp = rte_pktmbuf_read(mbuf, behind, headers, bytes);
	esp = (const struct rte_esp_hdr *)(format->in_udp ? udp + 1 : udp);
	if ((format->in_udp && udp->dst_port != RTE_BE16(ESP_UDP_PORT)) ||
	    esp->spi != rte_cpu_to_be_32(spi))
		return ESP_FOREIGN;
	*sequence = rte_be_to_cpu_32(esp->seq);
	if (end < text + format->block + format->icv ||
	    (end - text - format->icv) % format->block != 0)
		return ESP_MALFORMED;
	*parts = (struct esp_parts){
		.esp = (uint16_t)text - format->iv - sizeof(*esp),
		.text = (uint16_t)text,
		.length = (uint16_t)(end - text - format->icv),
	};
	return ESP_OURS;
}

struct rte_mbuf *esp_copy(struct rte_mempool *pool, struct rte_mbuf *mbuf,
			  const struct packet *packet, bool *too_long)
{
	const uint32_t end = end_of(mbuf, packet);

	return begin(pool, mbuf, end, end, too_long);
}

enum esp_content esp_unwrap(struct rte_mbuf *mbuf, uint16_t l3, const struct esp_format *format,
			    const struct esp_parts *parts)
{
	uint8_t *bytes = rte_pktmbuf_mtod(mbuf, uint8_t *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(bytes + l3);
	const uint16_t behind = l3 + rte_ipv4_hdr_len(ip);
	const struct rte_esp_tail *tail =
		(const struct rte_esp_tail *)(bytes + parts->text + parts->length) - 1;
	const uint8_t next = tail->next_proto, padded = tail->pad_len;

	if (padded + sizeof(*tail) > parts->length)
		return ESP_GARBLED;
	for (uint8_t i = 0; i < padded; i++)
		if (((const uint8_t *)tail - padded)[i] != i + 1)
			return ESP_GARBLED;
	if (next == IPPROTO_NONE) /* RFC 4303, section 2.6 */
		return ESP_DUMMY;
	rte_pktmbuf_trim(mbuf, padded + sizeof(*tail) + format->icv);
	memmove(bytes + parts->text - behind, bytes, behind); /* shorter than the content */
	rte_pktmbuf_adj(mbuf, parts->text - behind);
	set_header(rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, l3),
		   rte_pktmbuf_data_len(mbuf) - l3, next);
	return ESP_CONTENT;
}
