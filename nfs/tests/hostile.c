#include "tests/hostile.h"

#include <stdlib.h>

#include "core/ipv4.h"
#include "core/random.h"

#define LONGEST 1700

struct source {
	struct rig *rig;
	const uint32_t *addresses;
	unsigned int n;
	uint64_t random;
};

/* A buffer that ends where the packet ends, and records where it was allocated. */
struct exact {
	struct rte_mbuf_ext_shared_info shared;
	void *memory;
};

static void exact_free(void *memory, void *opaque)
{
	free(memory);
	free(opaque);
}

static struct rte_mbuf *exactly(struct rig *rig, const uint8_t *bytes, uint16_t length)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig->pool);
	struct exact *exact = calloc(1, sizeof(*exact));
	const uint16_t size = RTE_PKTMBUF_HEADROOM + length;

	if (!mbuf || !exact || !(exact->memory = malloc(size)))
		abort();
	exact->shared.free_cb = exact_free;
	exact->shared.fcb_opaque = exact;
	rte_mbuf_ext_refcnt_set(&exact->shared, 1);
	rte_pktmbuf_attach_extbuf(mbuf, exact->memory, RTE_BAD_IOVA, size, &exact->shared);
	rte_pktmbuf_reset_headroom(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, length), bytes, length);
	return mbuf;
}

uint16_t packet_bytes(struct rte_mbuf *packet, void *bytes, uint16_t room)
{
	const uint16_t length = RTE_MIN(rte_pktmbuf_pkt_len(packet), room);
	const void *from = rte_pktmbuf_read(packet, 0, length, bytes);

	if (from && from != bytes)
		memcpy(bytes, from, length);
	return from ? length : 0;
}

static struct rte_mbuf *split(struct rig *rig, const uint8_t *bytes, uint16_t length,
			      uint16_t first)
{
	struct rte_mbuf *head = exactly(rig, bytes, first);
	struct rte_mbuf *tail = exactly(rig, bytes + first, length - first);

	if (rte_pktmbuf_chain(head, tail) != 0)
		abort();
	return head;
}

struct rte_mbuf *in_two(struct rig *rig, struct rte_mbuf *packet, uint16_t first)
{
	uint8_t bytes[4096];
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes));
	struct rte_mbuf *two = split(rig, bytes, length, first);

	metadata_inherit(two, packet);
	rte_pktmbuf_free(packet);
	return two;
}

static uint32_t an_address(struct source *source)
{
	if (source->n > 0 && random_below(&source->random, 2))
		return source->addresses[random_below(&source->random, source->n)];
	return (uint32_t)random_next(&source->random);
}

static uint8_t a_protocol(struct source *source)
{
	static const uint8_t common_protocols[] = {IPPROTO_UDP, IPPROTO_UDP,  IPPROTO_TCP,
						   IPPROTO_TCP, IPPROTO_ICMP, IPPROTO_ICMP,
						   IPPROTO_IPIP};
	const uint32_t which = random_below(&source->random, RTE_DIM(common_protocols) + 1);

	return which < RTE_DIM(common_protocols) ? common_protocols[which]
						 : (uint8_t)random_next(&source->random);
}

/* A valid packet of a random protocol, whose payload may be a packet itself. */
static uint16_t valid_packet(struct source *source, uint8_t *bytes, int depth)
{
	uint64_t *random = &source->random;
	uint8_t payload[LONGEST] = {0};
	uint16_t length = random_below(random, random_below(random, 4) ? 80 : 1600);
	struct rte_mbuf *packet;
	struct packet_spec packet_spec = {
		.source = an_address(source),
		.destination = an_address(source),
		.source_port = random_below(random, 4),
		.destination_port = random_below(random, 4),
		.protocol = a_protocol(source),
		.ttl = 1 + random_below(random, 4),
		.tcp_flags = (uint8_t)random_next(random),
		.id = random_below(random, 4),
		.vlan = depth == 0 && random_below(random, 4) == 0 ? 5 : 0,
		.payload = payload,
	};

	for (uint16_t i = 0; i < length; i++)
		payload[i] = (uint8_t)random_next(random);
	if (depth < 2 &&
	    (packet_spec.protocol == IPPROTO_IPIP || packet_spec.protocol == IPPROTO_ICMP)) {
		uint8_t inner[LONGEST];
		const uint16_t packet_length = valid_packet(source, inner, depth + 1);

		if (packet_length - 14 < 1500) {
			length = packet_length - 14;
			memcpy(payload, inner + 14, length);
		}
	}
	if (random_below(random, 4) == 0)
		packet_spec.fragment =
			(uint16_t)random_next(random) & random_below(random, 0x10000);
	packet_spec.payload_length = RTE_MIN(length, 1600);
	packet = packet_from_spec(source->rig, &packet_spec);
	length = packet_bytes(packet, bytes, LONGEST);
	rte_pktmbuf_free(packet);
	return length;
}

/* Correct the checksums, so that other errors get past the checksum tests. */
static void restore(uint8_t *bytes, uint16_t length)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14);
	uint16_t header;

	if (length < 14 + sizeof(*ip))
		return;
	header = rte_ipv4_hdr_len(ip);
	if (header < sizeof(*ip) || length < 14 + header + 8)
		return;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (rte_be16_t)~rte_raw_cksum(ip, header);
	if (ip->next_proto_id == IPPROTO_ICMP) {
		struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(bytes + 14 + header);

		icmp->icmp_cksum = 0;
		icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, length - 14 - header);
	}
}

/* What is behind an IPv4 header as IPv6, with up to three extension headers; its new length. */
static uint16_t in_ipv6(struct source *source, uint8_t *bytes, uint16_t length)
{
	static const uint8_t kinds[] = {0, 43, 44, 51, 60};
	uint64_t *random = &source->random;
	const uint16_t behind = 14 + 20, payload = length - behind;
	uint8_t six[LONGEST] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60}, *next = six + 20;
	uint16_t at = 54;

	if (length < behind || payload > LONGEST - 54 - 3 * 24)
		return length;
	memcpy(six, bytes, 12);
	for (int i = 0; i < 4; i++)
		memcpy(six + 22 + 8 * i, bytes + 26, 8);
	for (uint32_t n = random_below(random, 4); n > 0; n--, at += 8 * (1 + (six[at + 1] & 1))) {
		*next = kinds[random_below(random, RTE_DIM(kinds))];
		next = six + at;
		six[at + 1] = *next == 44 ? 0 : random_below(random, 2);
		six[at + 3] = random_below(random, 4) ? 0 : (uint8_t)random_next(random);
	}
	*next = bytes[23] == IPPROTO_ICMP ? IPPROTO_ICMPV6 : bytes[23];
	memcpy(six + at, bytes + behind, payload);
	length = at + payload;
	six[18] = (uint8_t)((length - 54) >> 8);
	six[19] = (uint8_t)(length - 54);
	memcpy(bytes, six, length);
	return length;
}

static uint16_t mutated_bytes(struct source *source, uint8_t *bytes, uint16_t length)
{
	uint64_t *random = &source->random;

	if (random_below(random, 20) == 0 && bytes[12] == 0x08)
		length = in_ipv6(source, bytes, length);
	if (random_below(random, 2))
		for (uint32_t n = random_below(random, 6); n > 0; n--)
			bytes[random_below(random, random_below(random, 2) ? RTE_MIN(length, 80)
									   : length)] =
				(uint8_t)random_next(random);
	if (random_below(random, 20) == 0)
		memcpy(bytes + 12, (uint8_t[]){0x86, 0xdd}, 2);
	if (random_below(random, 5) == 0)
		length = random_below(random, length + 1);
	if (random_below(random, 4))
		restore(bytes, length);
	return length;
}

static struct rte_mbuf *randomly_segmented(struct source *source, const uint8_t *bytes,
					   uint16_t length)
{
	if (length > 1 && random_below(&source->random, 4) == 0)
		return split(source->rig, bytes, length,
			     1 + random_below(&source->random, length - 1));
	return exactly(source->rig, bytes, length);
}

static struct rte_mbuf *hostile(struct source *source)
{
	static const uint8_t icmp_types[] = {0, 3, 3, 3, 4, 5, 8, 11, 11, 12, 13};
	uint8_t bytes[LONGEST];
	uint16_t length = valid_packet(source, bytes, 0);
	struct rte_mbuf *mbuf;

	if (bytes[23] == IPPROTO_ICMP && length > 34)
		bytes[34] = icmp_types[random_below(&source->random, RTE_DIM(icmp_types))];
	length = mutated_bytes(source, bytes, length);
	mbuf = randomly_segmented(source, bytes, length);
	metadata_begin(mbuf, random_below(&source->random, 2) ? NF_INSIDE : NF_OUTSIDE, 0);
	return mbuf;
}

struct rte_mbuf *hostile_packet(struct rig *rig, const uint32_t *addresses, unsigned int n,
				uint64_t *random)
{
	struct source source = {.rig = rig, .addresses = addresses, .n = n, .random = *random};
	struct rte_mbuf *mbuf = hostile(&source);

	*random = source.random;
	return mbuf;
}

static bool header_is_right(struct rte_mbuf *mbuf)
{
	const struct packet packet = packet_parse(mbuf);

	return packet.type == PACKET_IPV4 && ipv4_checksum_is_right(packet_ipv4(mbuf, &packet));
}

/* Offer a burst and check what is sent. */
static void offer(struct rig *rig, struct rte_mbuf **burst, uint16_t n, uint64_t now_us,
		  sent_check check)
{
	for (uint16_t i = 0; i < n; i++)
		burst[i]->hash.usr = header_is_right(burst[i]);
	rig_process(rig, burst, n, now_us);
	for (uint32_t i = 0; check && i < rig->out.n; i++)
		check(rig->out.packets[i]);
}

/* The same for packets that the function held. */
static void flush(struct rig *rig, sent_check check)
{
	nf_out_free(&rig->out);
	nf_flush(rig->nf, &rig->out);
	for (uint32_t i = 0; check && i < rig->out.n; i++)
		check(rig->out.packets[i]);
}

void offer_hostile(struct rig *rig, const uint32_t *addresses, unsigned int n, sent_check check)
{
	struct source source = {.rig = rig, .addresses = addresses, .n = n, .random = 1};
	uint64_t now_us = rig->nf->now_us;
	struct rte_mbuf *burst[NF_BURST];

	for (int offered = 0; offered < HOSTILE_PACKETS;) {
		const uint16_t size = 1 + random_below(&source.random, NF_BURST);

		for (uint16_t i = 0; i < size; i++)
			burst[i] = hostile(&source);
		now_us += random_below(&source.random, 1000000);
		offer(rig, burst, size, now_us, check);
		offered += size;
	}
	flush(rig, check);
}

static struct rte_mbuf *mutated(struct source *source, struct rte_mbuf *packet)
{
	uint8_t bytes[LONGEST];
	const uint16_t length = packet_bytes(packet, bytes, LONGEST);
	struct rte_mbuf *mbuf =
		randomly_segmented(source, bytes, mutated_bytes(source, bytes, length));

	metadata_inherit(mbuf, packet);
	return mbuf;
}

void offer_mutations_of(struct rig *rig, struct rte_mbuf **packets, unsigned int n,
			sent_check check)
{
	struct source source = {.rig = rig, .random = 2};

	for (int offered = 0; offered < HOSTILE_PACKETS; offered++) {
		struct rte_mbuf *mbuf = mutated(&source, packets[offered % n]);

		offer(rig, &mbuf, 1, rig->nf->now_us + 1000, check);
	}
	flush(rig, check);
	rte_pktmbuf_free_bulk(packets, n);
}
