#include <stdlib.h>

#include "core/random.h"
#include "tests/hostile.h"

#define SECOND 1000000ull
#define HEADER 20 /* of the tunnel */

static const uint32_t local = RTE_IPV4(192, 0, 2, 1);
static const uint32_t remote = RTE_IPV4(192, 0, 2, 2);

static const struct made udp = {.source = RTE_IPV4(10, 0, 0, 1),
				.destination = RTE_IPV4(198, 51, 100, 7),
				.source_port = 1000,
				.destination_port = 53,
				.payload_length = 8,
				.port = NF_INSIDE};

static struct rte_mbuf *sent(struct rig *rig)
{
	assert_int_equal(rig->out.n, 1);
	return rig->out.packets[0];
}

static struct rte_ipv4_hdr *ip_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, 14);
}

/* The same bytes, as they arrive from outside. */
static struct rte_mbuf *arrived(struct rig *rig, struct rte_mbuf *packet)
{
	uint8_t bytes[10000];
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes));
	struct rte_mbuf *copy = packet_of(rig, bytes, RTE_MIN(length, 2000));

	assert_true(length <= 2000);
	copy->port = NF_OUTSIDE;
	return copy;
}

/* A tunnel whose other end is this end's own. */
static void make_back(struct rig *rig)
{
	const struct nf_setting settings[] = {{"local", remote}, {"remote", local}};

	rig_make(rig, "IPTunnel", settings, 2);
}

/* What was sent, in and out of the tunnel again by its other end. */
static void take_out(struct rig *rig)
{
	struct rte_mbuf *burst[NF_BURST];
	const uint16_t n = (uint16_t)rig->out.n;

	assert_true(n <= NF_BURST);
	for (uint16_t i = 0; i < n; i++)
		burst[i] = arrived(rig, rig->out.packets[i]);
	make_back(rig);
	rig_offer_burst(rig, burst, n, 1);
}

/* A packet gets the tunnel's header, with its own type of service and right checksums. */
static void encapsulates(void **state)
{
	struct rig *rig = *state;
	const struct rte_ipv4_hdr *outer, *inner;
	struct rte_mbuf *packet = packet_made(rig, &udp);

	ip_of(packet)->type_of_service = 0xb8;
	ip_of(packet)->hdr_checksum = 0;
	ip_of(packet)->hdr_checksum = rte_ipv4_cksum(ip_of(packet));
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet, 1);
	outer = ip_of(sent(rig));
	inner = outer + 1;
	assert_true(checksums_right(sent(rig)));
	assert_int_equal(rte_raw_cksum(inner, sizeof(*inner)), 0xffff);
	assert_int_equal(outer->next_proto_id, IPPROTO_IPIP);
	assert_int_equal(outer->type_of_service, 0xb8);
	assert_int_equal(rte_be_to_cpu_16(outer->total_length), 20 + 20 + 8 + 8);
	assert_int_equal(rte_be_to_cpu_32(outer->src_addr), local);
	assert_int_equal(rte_be_to_cpu_32(outer->dst_addr), remote);
	assert_int_equal(outer->time_to_live, 64);
	assert_int_equal(inner->time_to_live, 63);
	assert_int_equal(rte_be_to_cpu_32(inner->src_addr), udp.source);
	assert_int_equal(sent(rig)->port, NF_OUTSIDE);
	assert_int_equal(rig_count(rig, "encapsulated"), 1);
}

/* What may not be cut may not be in the tunnel either (RFC 2003, section 3.1). */
static void dont_fragment_is_copied(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;

	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(ip_of(sent(rig))->fragment_offset, 0);
	made.fragment = RTE_IPV4_HDR_DF_FLAG;
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(ip_of(sent(rig))->fragment_offset, RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
}

/* In at one end and out at the other: the same packet, one hop later. */
static void there_and_back(void **state)
{
	struct rig *rig = *state;
	uint64_t random = 1;

	for (int i = 0; i < 300; i++) {
		uint8_t payload[1400], before[2000], after[2000];
		struct made made = udp;
		struct rte_mbuf *packet;
		uint16_t length;

		for (size_t at = 0; at < sizeof(payload); at++)
			payload[at] = (uint8_t)random_next(&random);
		made.payload = payload;
		made.payload_length = random_below(&random, sizeof(payload));
		made.protocol = random_below(&random, 2) ? IPPROTO_TCP : IPPROTO_UDP;
		made.vlan = random_below(&random, 2) * 5;
		made.ttl = 17;
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, packet_made(rig, &made), 1);
		take_out(rig);
		assert_int_equal(sent(rig)->port, NF_INSIDE);
		assert_true(checksums_right(sent(rig)));
		made.ttl = 16;
		packet = packet_made(rig, &made);
		length = packet_bytes(packet, before, sizeof(before));
		assert_int_equal(packet_bytes(sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, length);
		rte_pktmbuf_free(packet);
	}
}

/* Fragments as a receiver puts them together by hand: bytes of the payload, and how many. */
static uint32_t put_together(struct rig *rig, uint8_t *payload, uint16_t most, uint16_t skip)
{
	uint32_t end = 0, got = 0;

	for (uint32_t i = 0; i < rig->out.n; i++) {
		uint8_t bytes[2000];
		const uint16_t length = packet_bytes(rig->out.packets[i], bytes, sizeof(bytes));
		const struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14 + skip);
		const uint16_t field = rte_be_to_cpu_16(ip->fragment_offset);
		const uint16_t at = (field & RTE_IPV4_HDR_OFFSET_MASK) * 8;
		const uint16_t part = rte_be_to_cpu_16(ip->total_length) - rte_ipv4_hdr_len(ip);

		assert_true(length - 14 <= most);
		assert_int_equal(length, 14 + skip + rte_ipv4_hdr_len(ip) + part);
		assert_int_equal(rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)), 0xffff);
		memcpy(payload + at, bytes + 14 + skip + rte_ipv4_hdr_len(ip), part);
		got += part;
		if (!(field & RTE_IPV4_HDR_MF_FLAG))
			end = at + part;
		else
			assert_int_equal(part % 8, 0);
	}
	assert_int_equal(got, end);
	return end;
}

/* Whatever its length and the MTU, a packet's fragments fit and make the packet again. */
static void fragments_make_the_original(void **state)
{
	static const uint16_t mtus[] = {88, 89, 120, 576, 1280, 1500};
	struct rig *rig = *state;
	uint64_t random = 9;

	for (int i = 0; i < 400; i++) {
		const uint16_t mtu = mtus[random_below(&random, RTE_DIM(mtus))];
		const struct nf_setting settings[] = {{"mtu", mtu}};
		uint8_t payload[1900], together[65536];
		struct made made = udp;
		struct rte_mbuf *packet;

		for (size_t at = 0; at < sizeof(payload); at++)
			payload[at] = (uint8_t)random_next(&random);
		made.payload = payload;
		made.payload_length = random_below(&random, sizeof(payload));
		packet = packet_made(rig, &made);
		if (random_below(&random, 2) && made.payload_length > 10)
			packet = in_two(rig, packet,
					50 + random_below(&random, made.payload_length - 9));
		rig_make(rig, "IPTunnel", settings, 1);
		rig_offer(rig, packet, 1);
		assert_int_equal(put_together(rig, together, mtu, HEADER), 8 + made.payload_length);
		assert_memory_equal(together + 8, payload, made.payload_length);
		if (8 + 20 + 20 + made.payload_length > mtu) {
			assert_int_equal(rig_count(rig, "fragmented"), 1);
			assert_int_equal(rig_count(rig, "fragments"), rig->out.n);
		}
	}
}

/* 1,500 bytes and an MTU of 1,500: two fragments, of which the first is as long as can be. */
static void the_usual_case(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;

	made.payload_length = 1500 - 28;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig->out.n, 2);
	assert_int_equal(rte_pktmbuf_pkt_len(rig->out.packets[0]), 14 + 20 + 20 + 1456);
	assert_int_equal(rte_pktmbuf_pkt_len(rig->out.packets[1]), 14 + 20 + 20 + 1480 - 1456);
}

/* A fragment is cut further, and keeps its place in the datagram. */
static void fragments_of_fragments(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"mtu", 88}};
	struct made made = udp;
	const struct rte_ipv4_hdr *inner;

	made.fragment = RTE_IPV4_HDR_MF_FLAG | 10;
	made.payload_length = 96;
	rig_make(rig, "IPTunnel", settings, 1);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig->out.n, 2);
	inner = ip_of(rig->out.packets[0]) + 1;
	assert_int_equal(inner->fragment_offset, RTE_BE16(RTE_IPV4_HDR_MF_FLAG | 10));
	inner = ip_of(rig->out.packets[1]) + 1;
	assert_int_equal(inner->fragment_offset, RTE_BE16(RTE_IPV4_HDR_MF_FLAG | 16));
}

/* Later fragments have only the options that say so (RFC 791). */
static void options_are_copied_or_not(void **state)
{
	static const uint8_t options[12] = {0x07, 7, 4, 0, 0, 0, 0, /* record route: not copied */
					    0x94, 4, 0, 0, 0};      /* router alert: copied */
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"mtu", 120}};
	struct made made = udp;
	struct rte_mbuf *packet;
	struct rte_ipv4_hdr *ip;
	uint8_t together[65536];
	char *front;

	made.payload_length = 200;
	packet = packet_made(rig, &made);
	front = rte_pktmbuf_prepend(packet, sizeof(options));
	if (!front)
		abort();
	memmove(front, front + sizeof(options), 34);
	memcpy(front + 34, options, sizeof(options));
	ip = ip_of(packet);
	ip->version_ihl = 0x48;
	ip->total_length = RTE_BE16(32 + 208);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (rte_be16_t)~rte_raw_cksum(ip, 32);
	rig_make(rig, "IPTunnel", settings, 1);
	rig_offer(rig, packet, 1);
	assert_int_equal(rig->out.n, 3); /* 64, 72 and 72 bytes */
	assert_int_equal((ip_of(rig->out.packets[0]) + 1)->version_ihl, 0x48);
	for (int i = 1; i < 3; i++) {
		ip = ip_of(rig->out.packets[i]) + 1;
		assert_int_equal(ip->version_ihl, 0x46);
		assert_memory_equal(ip + 1, options + 7, 4);
	}
	assert_int_equal(put_together(rig, together, 120, HEADER), 208);
}

/* What is too long and must not be cut is freed, and its sender told which MTU would do. */
static void fragmentation_needed(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;
	const struct rte_ipv4_hdr *ip, *quoted;
	const uint8_t *icmp;

	made.payload_length = 1480 - 28;
	made.fragment = RTE_IPV4_HDR_DF_FLAG;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig_count(rig, "encapsulated"), 1);
	made.payload_length++;
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_true(checksums_right(sent(rig)));
	assert_int_equal(sent(rig)->port, NF_INSIDE);
	ip = ip_of(sent(rig));
	icmp = (const uint8_t *)(ip + 1);
	quoted = (const struct rte_ipv4_hdr *)(icmp + 8);
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), made.source);
	assert_int_equal(rte_be_to_cpu_32(ip->src_addr), local);
	assert_memory_equal(icmp, ((uint8_t[]){3, 4}), 2);
	assert_memory_equal(icmp + 6, ((uint8_t[]){1480 >> 8, 1480 & 0xff}), 2);
	assert_int_equal(quoted->time_to_live, 64);
	assert_int_equal(rig_count(rig, "too_big"), 1);
}

/* A packet without a hop left is not put in (RFC 2003, section 3.1); one of its ends neither. */
static void expired_or_looping(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;

	made.ttl = 1;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rte_pktmbuf_mtod(sent(rig), uint8_t *)[34], 11);
	assert_int_equal(rig_count(rig, "expired"), 1);
	made.ttl = 9;
	made.source = remote;
	rig_offer(rig, packet_made(rig, &made), 1);
	made.source = local;
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "looping"), 2);
}

/* A packet in the tunnel, cut into parts of `size` bytes by somebody on its way. */
static uint16_t tunnelled_parts(struct rig *rig, uint16_t size, struct rte_mbuf **parts,
				struct rte_mbuf **original)
{
	uint8_t payload[1400], bytes[2000];
	struct made outer = {.source = remote,
			     .destination = local,
			     .protocol = IPPROTO_IPIP,
			     .id = 77,
			     .port = NF_OUTSIDE};
	struct made made = udp;
	uint16_t whole, n = 0;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	made.payload = payload;
	made.payload_length = sizeof(payload);
	*original = packet_made(rig, &made);
	whole = packet_bytes(*original, bytes, sizeof(bytes)) - 14;
	for (uint16_t at = 0; at < whole; at += size) {
		outer.payload = bytes + 14 + at;
		outer.payload_length = RTE_MIN(size, whole - at);
		outer.fragment = at / 8 | (at + size < whole ? RTE_IPV4_HDR_MF_FLAG : 0);
		parts[n++] = packet_made(rig, &outer);
	}
	return n;
}

/* What was cut in the tunnel comes out whole, in whatever order its parts came. */
static void parts_are_put_together(void **state)
{
	static const uint16_t sizes[] = {184, 480, 720, 1424};
	struct rig *rig = *state;
	uint64_t random = 4;

	for (int i = 0; i < 200; i++) {
		struct rte_mbuf *parts[NF_BURST], *original;
		uint8_t before[2000], after[2000];
		uint16_t n = tunnelled_parts(rig, sizes[i % RTE_DIM(sizes)], parts, &original);
		uint16_t length;

		for (uint16_t j = n - 1; j > 0; j--) {
			const uint32_t other = random_below(&random, j + 1);

			RTE_SWAP(parts[j], parts[other]);
		}
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer_burst(rig, parts, n, 1);
		assert_true(checksums_right(sent(rig)));
		length = packet_bytes(original, before, sizeof(before));
		assert_int_equal(packet_bytes(sent(rig), after, sizeof(after)), length);
		assert_memory_equal(before, after, length);
		assert_int_equal(rig_count(rig, "fragments_received"), n);
		assert_int_equal(sent(rig)->port, NF_INSIDE);
		rte_pktmbuf_free(original);
	}
}

/* Parts may differ in their tags, and be padded over several segments. */
static void parts_that_differ(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 6; i++) {
		struct rte_mbuf *parts[NF_BURST], *original;
		uint8_t before[2000], after[2000];
		const uint16_t n = tunnelled_parts(rig, 720, parts, &original);
		char *front;

		assert_int_equal(n, 2);
		front = rte_pktmbuf_prepend(parts[i % 2], sizeof(struct rte_vlan_hdr));
		if (!front)
			abort();
		memmove(front, front + 4, 12);
		memcpy(front + 12, ((uint8_t[]){0x81, 0, 0, 5}), 4);
		if (i >= 2) {
			front = rte_pktmbuf_append(parts[0], 50);
			if (!front)
				abort();
			memset(front, 0xaa, 50);
			parts[0] = in_two(rig, parts[0], rte_pktmbuf_pkt_len(parts[0]) - 10);
		}
		if (i >= 4)
			RTE_SWAP(parts[0], parts[1]);
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer_burst(rig, parts, n, 1);
		assert_true(rte_pktmbuf_pkt_len(sent(rig)) >= rte_pktmbuf_pkt_len(original));
		packet_bytes(original, before, sizeof(before));
		packet_bytes(sent(rig), after, sizeof(after));
		assert_memory_equal(before + 14, after + (i % 2 ? 14 : 18),
				    rte_pktmbuf_pkt_len(original) - 14);
		rte_pktmbuf_free(original);
	}
}

/* Parts that come over several bursts wait for each other; a lost one is waited for no longer. */
static void parts_wait(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *parts[NF_BURST], *original;
	uint16_t n = tunnelled_parts(rig, 480, parts, &original);

	rte_pktmbuf_free(original);
	rig_make(rig, "IPTunnel", NULL, 0);
	for (uint16_t i = 0; i < n; i++) {
		rig->nf->now_us = SECOND * (1 + i);
		nf_process(rig->nf, &parts[i], 1, &rig->out);
		assert_int_equal(rig->out.n, i + 1 == n);
	}
	nf_out_free(&rig->out);
	n = tunnelled_parts(rig, 480, parts, &original);
	rte_pktmbuf_free(original);
	for (uint16_t i = 0; i < n; i++) {
		rig->nf->now_us = SECOND * (40 + 40 * i);
		nf_process(rig->nf, &parts[i], 1, &rig->out);
		assert_int_equal(rig->out.n, 0);
	}
}

/* The mark of congestion comes out, unless nobody would understand it (RFC 6040, figure 4). */
static void congestion_marks(void **state)
{
	static const struct {
		uint8_t inner, outer, comes; /* 0xff: freed */
	} cases[] = {
		{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 3, 0xff}, {2, 0, 2}, {2, 1, 1},
		{2, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1},    {1, 2, 1}, {1, 3, 3},
		{3, 0, 3}, {3, 1, 3}, {3, 2, 3}, {3, 3, 3},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *part, *original;
		struct rte_ipv4_hdr *outer;

		tunnelled_parts(rig, 1432, &part, &original);
		rte_pktmbuf_free(original);
		outer = ip_of(part);
		outer[0].type_of_service = cases[i].outer;
		outer[1].type_of_service = 0x40 | cases[i].inner;
		for (int j = 0; j < 2; j++) {
			outer[j].hdr_checksum = 0;
			outer[j].hdr_checksum = rte_ipv4_cksum(&outer[j]);
		}
		rig_make(rig, "IPTunnel", NULL, 0);
		rig_offer(rig, part, 1);
		if (cases[i].comes == 0xff) {
			assert_int_equal(rig_count(rig, "congested"), 1);
			continue;
		}
		assert_true(checksums_right(sent(rig)));
		assert_int_equal(ip_of(sent(rig))->type_of_service, 0x40 | cases[i].comes);
	}
}

/* From outside, only what the other end sent through the tunnel comes in. */
static void foreign_packets(void **state)
{
	struct rig *rig = *state;
	struct made made = {.source = remote,
			    .destination = local,
			    .protocol = IPPROTO_IPIP,
			    .payload_length = 40,
			    .port = NF_OUTSIDE};

	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1); /* zeros are no packet */
	assert_int_equal(rig_count(rig, "malformed"), 1);
	made.source++;
	rig_offer(rig, packet_made(rig, &made), 1);
	made.source--;
	made.destination++;
	rig_offer(rig, packet_made(rig, &made), 1);
	made.destination--;
	made.protocol = IPPROTO_UDP;
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig_count(rig, "foreign"), 3);
}

/* Without buffers nothing is sent in part. */
static void no_buffers(void **state)
{
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"mtu", 88}};
	struct rte_mbuf *taken[RIG_PACKETS];
	struct made made = udp;

	made.payload_length = 1000;
	rig_make(rig, "IPTunnel", settings, 1);
	assert_return_code(rte_pktmbuf_alloc_bulk(rig->spare, taken, RIG_PACKETS - 3), 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(rig->out.n, 0);
	assert_int_equal(rig_count(rig, "no_room"), 1);
	rte_pktmbuf_free_bulk(taken, RIG_PACKETS - 3);
}

/* A packet of a tunnel in a tunnel is one like any other; IPv6 and broken headers are freed. */
static void other_packets(void **state)
{
	struct rig *rig = *state;
	struct made made = udp;
	struct rte_mbuf *six = packet_made(rig, &udp), *unsound = packet_made(rig, &udp);

	made.protocol = IPPROTO_IPIP;
	made.payload_length = 60;
	rte_pktmbuf_mtod(six, uint16_t *)[6] = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	ip_of(unsound)->hdr_checksum ^= 1;
	rig_make(rig, "IPTunnel", NULL, 0);
	rig_offer(rig, packet_made(rig, &made), 1);
	assert_int_equal(ip_of(sent(rig))->next_proto_id, IPPROTO_IPIP);
	rig_offer(rig, six, 1);
	rig_offer(rig, unsound, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
	assert_int_equal(rig_count(rig, "bad_checksum"), 1);
	assert_int_equal(rig_count(rig, "encapsulated"), 1);
}

static void header_checksum_right(struct rte_mbuf *packet)
{
	const struct packet parsed = packet_parse(packet);
	const struct rte_ipv4_hdr *ip;

	assert_int_equal(parsed.type, PACKET_IPV4);
	ip = packet_ipv4(packet, &parsed);
	assert_int_equal(rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)), 0xffff);
}

/* Hostile packets, mutated tunnelled ones and mutated fragments leave sound headers or nothing. */
static void hostile_packets(void **state)
{
	const uint32_t addresses[] = {local, remote};
	struct rig *rig = *state;
	const struct nf_setting settings[] = {{"mtu", 200}};
	struct rte_mbuf *parts[NF_BURST], *original;

	rig_make(rig, "IPTunnel", settings, 1);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "encapsulated"), 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), header_checksum_right);
	tunnelled_parts(rig, 1432, parts, &original);
	offer_mutations(rig, original);
	offer_mutations(rig, parts[0]);
	assert_true(rig_count(rig, "decapsulated") > 1000);
	assert_int_equal(tunnelled_parts(rig, 720, parts, &original), 2);
	rte_pktmbuf_free(original);
	offer_mutations(rig, parts[0]);
	offer_mutations(rig, parts[1]);
}

/* Fragments that overlap, repeat, and differ in tags and segments do no harm. */
static void hostile_fragments(void **state)
{
	struct rig *rig = *state;
	uint64_t random = 6;

	rig_make(rig, "IPTunnel", NULL, 0);
	for (int i = 0; i < 30000; i++) {
		uint8_t payload[64] = {0x45, 0, 0, 28, 0, 0, 0, 0, 64, IPPROTO_UDP};
		struct made made = {
			.source = remote,
			.destination = local,
			.protocol = IPPROTO_IPIP,
			.id = random_below(&random, 3),
			.vlan = random_below(&random, 4) == 0,
			.payload = payload,
			.payload_length = random_below(&random, 5) * 8,
			.fragment = random_below(&random, 6),
			.port = NF_OUTSIDE,
		};
		struct rte_ipv4_hdr *inner = (struct rte_ipv4_hdr *)payload;
		struct rte_mbuf *packet;

		inner->hdr_checksum = rte_ipv4_cksum(inner);
		if (random_below(&random, 3))
			made.fragment |= RTE_IPV4_HDR_MF_FLAG;
		packet = packet_made(rig, &made);
		rig->nf->now_us += random_below(&random, 1000);
		if (rte_pktmbuf_pkt_len(packet) > 40 && random_below(&random, 2))
			packet = in_two(rig, packet, 38 + random_below(&random, 3));
		nf_process(rig->nf, &packet, 1, &rig->out);
		if (rig->out.n > 0)
			assert_int_equal(packet_parse(sent(rig)).type, PACKET_IPV4);
		nf_out_free(&rig->out);
	}
	assert_true(rig_count(rig, "decapsulated") > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(encapsulates, setup, teardown),
		cmocka_unit_test_setup_teardown(dont_fragment_is_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(fragments_make_the_original, setup, teardown),
		cmocka_unit_test_setup_teardown(the_usual_case, setup, teardown),
		cmocka_unit_test_setup_teardown(fragments_of_fragments, setup, teardown),
		cmocka_unit_test_setup_teardown(options_are_copied_or_not, setup, teardown),
		cmocka_unit_test_setup_teardown(fragmentation_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(expired_or_looping, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_are_put_together, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_that_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(congestion_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(foreign_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(no_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(other_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_fragments, setup, teardown),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
