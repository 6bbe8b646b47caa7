#include "core/fragment.h"

#include <errno.h>

#define OPTION_COPIED 0x80 /* copied into every fragment */
#define OPTION_END 0
#define OPTION_NOP 1
#define MOST_HEADER 60

/* The header of non-initial fragments, with the options that are copied to them. */
struct non_initial_header {
	uint8_t bytes[MOST_HEADER];
	uint16_t length;
};

static uint16_t copied_options(const uint8_t *options, uint16_t length, uint8_t *to)
{
	uint16_t copied = 0;

	for (uint16_t at = 0; at < length && options[at] != OPTION_END;) {
		uint16_t size = 1;

		if (options[at] != OPTION_NOP) {
			if (at + 1 >= length || options[at + 1] < 2 ||
			    at + options[at + 1] > length)
				break; /* invalid: the rest cannot be parsed */
			size = options[at + 1];
		}
		if (options[at] & OPTION_COPIED) {
			memcpy(to + copied, options + at, size);
			copied += size;
		}
		at += size;
	}
	return copied;
}

static struct non_initial_header non_initial_header_of(const struct rte_ipv4_hdr *ip)
{
	const uint16_t options = rte_ipv4_hdr_len(ip) - sizeof(*ip);
	struct non_initial_header header = {0}; /* zeros end and pad the options */
	uint16_t copied;

	memcpy(header.bytes, ip, sizeof(*ip));
	copied = copied_options((const uint8_t *)(ip + 1), options, header.bytes + sizeof(*ip));
	header.length = sizeof(*ip) + RTE_ALIGN_CEIL(copied, 4);
	header.bytes[0] = IPVERSION << 4 | header.length / 4;
	return header;
}

/* Set length and fragment offset (in 8 bytes) of a header. */
static void set_fragment_header(struct rte_ipv4_hdr *ip, uint16_t length, uint16_t offset,
				bool more)
{
	const uint16_t flags = rte_be_to_cpu_16(ip->fragment_offset) &
			       (uint16_t) ~(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG);

	ip->total_length = rte_cpu_to_be_16(rte_ipv4_hdr_len(ip) + length);
	ip->fragment_offset = rte_cpu_to_be_16(flags | offset | (more ? RTE_IPV4_HDR_MF_FLAG : 0));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

void packet_cut(struct rte_mbuf *mbuf, uint32_t length)
{
	struct rte_mbuf *last = mbuf;
	uint32_t left = length;

	for (; left > rte_pktmbuf_data_len(last); last = last->next)
		left -= rte_pktmbuf_data_len(last);
	last->data_len = (uint16_t)left;
	rte_pktmbuf_free(last->next); /* NULL is allowed */
	last->next = NULL;
	mbuf->pkt_len = length;
	mbuf->nb_segs = 1;
	for (last = mbuf; last->next; last = last->next)
		mbuf->nb_segs++;
}

/* Copy bytes of a packet across its segments. */
static void copy(const struct rte_mbuf *mbuf, uint32_t at, uint16_t length, void *to)
{
	const void *from = rte_pktmbuf_read(mbuf, at, length, to);

	if (from && from != to)
		memcpy(to, from, length);
}

static struct rte_mbuf *non_initial_fragment(const struct rte_mbuf *mbuf, uint16_t l3,
					     const struct non_initial_header *header, uint32_t at,
					     uint16_t length, struct rte_mempool *pool)
{
	struct rte_mbuf *fragment = rte_pktmbuf_alloc(pool);
	char *data;

	if (!fragment)
		return NULL;
	data = rte_pktmbuf_append(fragment, l3 + header->length + length);
	if (!data) {
		rte_pktmbuf_free(fragment);
		return NULL;
	}
	memcpy(data, rte_pktmbuf_mtod(mbuf, const void *), l3);
	memcpy(data + l3, header->bytes, header->length);
	copy(mbuf, at, length, data + l3 + header->length);
	metadata_inherit(fragment, mbuf);
	return fragment;
}

/* Room of a buffer behind the Ethernet header. */
static uint16_t room_behind(struct rte_mempool *pool, uint16_t l3)
{
	return rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM - l3;
}

/* Make the fragments after the first one, which holds `done` bytes of `all`. See ipv4_fragment. */
static int non_initial_fragments(struct rte_mbuf *mbuf, const struct packet *packet, uint16_t mtu,
				 uint32_t done, struct rte_mempool *pool,
				 struct rte_mbuf **fragments)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const struct non_initial_header header = non_initial_header_of(ip);
	const uint32_t payload = packet->l3 + rte_ipv4_hdr_len(ip);
	const uint32_t all = packet->l3 + rte_be_to_cpu_16(ip->total_length) - payload;
	const uint16_t flags = rte_be_to_cpu_16(ip->fragment_offset);
	const uint16_t offset = flags & RTE_IPV4_HDR_OFFSET_MASK;
	const uint16_t most =
		(uint16_t)((RTE_MIN(mtu, room_behind(pool, packet->l3)) - header.length) & ~7);
	int n = 1;

	for (; done < all; n++) {
		const uint16_t length = (uint16_t)RTE_MIN(most, all - done);
		const bool more = done + length < all || (flags & RTE_IPV4_HDR_MF_FLAG);
		struct rte_mbuf *next = n < FRAGMENTS_MOST
						? non_initial_fragment(mbuf, packet->l3, &header,
								       payload + done, length, pool)
						: NULL;

		if (!next) {
			rte_pktmbuf_free_bulk(fragments + 1, n - 1);
			return n < FRAGMENTS_MOST ? -ENOMEM : -E2BIG;
		}
		set_fragment_header(packet_ipv4(next, packet), length, offset + done / 8, more);
		fragments[n] = next;
		done += length;
	}
	return n;
}

int ipv4_fragment(struct rte_mbuf *mbuf, const struct packet *packet, uint16_t mtu,
		  struct rte_mempool *pool, struct rte_mbuf *fragments[FRAGMENTS_MOST])
{
	struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const uint16_t header = rte_ipv4_hdr_len(ip);
	const uint16_t total = rte_be_to_cpu_16(ip->total_length);
	const uint16_t first = (uint16_t)((mtu - header) & ~7);
	const uint16_t offset = rte_be_to_cpu_16(ip->fragment_offset) & RTE_IPV4_HDR_OFFSET_MASK;
	int n;

	fragments[0] = mbuf;
	if (total <= mtu)
		return 1;
	if (offset * 8 + total > UINT16_MAX) /* larger than an IPv4 datagram can be */
		return -EMSGSIZE;
	n = non_initial_fragments(mbuf, packet, mtu, first, pool, fragments);
	if (n > 1) {
		packet_cut(mbuf, packet->l3 + header + first);
		set_fragment_header(ip, first, offset, true);
		packet_changed(mbuf);
	}
	return n;
}
