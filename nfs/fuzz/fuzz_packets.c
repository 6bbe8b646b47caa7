/*
 * fuzz_packets: runs one network function on bursts of packets made from the fuzzer's bytes.
 *
 * An input is a choice of function (one byte), then packets: flags (one byte), time passed (one
 * byte; if not 0, a new burst begins), length (two bytes), bytes. A fuzzer hardly guesses a
 * checksum, consistent lengths, a port that NAT has chosen, or fragments and segments that belong
 * together: by the flags, they are corrected, or the packet is a reply to the last one sent,
 * modified by the bytes, or it is made a fragment, of the datagram of the packet before it, or a
 * segment that is due in the stream of the one before it, or nearly. The function is created
 * anew for each input, so that failures are reproducible; only one that is slow to create (a
 * routing table) is reused. After each input all packets must have been returned.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>

#include "accelerators/accelerator.h"
#include "core/nf.h"
#include "core/packet.h"
#include "tests/one_core.h"
#include "tests/poison.h"

#define PACKETS 127
#define MOST_KINDS 64
#define MOST_BYTES 1600 /* of a packet */
#define LONG_MS 2

static struct rte_mempool *pool, *spare;
static struct accelerator *accelerators[ACCELERATOR_KINDS];
static struct nf_out out;
static struct nf *kept[MOST_KINDS][2];

struct input {
	const uint8_t *bytes;
	size_t left;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fail(const char *what)
{
	fprintf(stderr, "fuzz_packets: %s: %s\n", what, rte_strerror(rte_errno));
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	if (!start_on_one_core((*argv)[0], "512"))
		abort();
	pool = rte_pktmbuf_pool_create("packets", PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	spare = rte_pktmbuf_pool_create("spare", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					SOCKET_ID_ANY);
	if (!pool || !spare)
		fail("no packets");
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		accelerators[kind] = accelerator_create(kind);
	return 0;
}

static const uint8_t *take(struct input *input, size_t n)
{
	const uint8_t *bytes = input->bytes;

	if (input->left < n)
		return NULL;
	input->bytes += n;
	input->left -= n;
	return bytes;
}

enum { SIDE = 1, ORDERED = 2, SUMMED = 4, REPLY = 8, MORE = 16, BEHIND = 32, IPV6 = 64, DUE = 128 };
enum { WHAT, TIME, LENGTH, HEAD = LENGTH + 2 };

/* The last packet sent, of this input. */
static struct {
	uint16_t length;
	uint8_t bytes[MOST_BYTES];
} sent;

static void remember_sent(void)
{
	const struct rte_mbuf *last = out.n > 0 ? out.packets[out.n - 1] : NULL;

	if (last && rte_pktmbuf_data_len(last) <= sizeof(sent.bytes)) {
		sent.length = rte_pktmbuf_data_len(last);
		memcpy(sent.bytes, rte_pktmbuf_mtod(last, const uint8_t *), sent.length);
	}
	nf_out_free(&out);
}

static void swap(uint8_t *one, uint8_t *other, size_t n)
{
	uint8_t kept[8];

	memcpy(kept, one, n);
	memcpy(one, other, n);
	memcpy(other, kept, n);
}

/* Swap source and destination. */
static void turn_around(struct rte_mbuf *packet)
{
	const struct packet headers = packet_parse_any(packet);
	struct rte_ipv4_hdr *ip;
	rte_be16_t *ports;

	if (headers.type != PACKET_IPV4)
		return;
	ip = packet_ipv4(packet, &headers);
	ports = packet_ports(packet, &headers);
	swap((uint8_t *)&ip->src_addr, (uint8_t *)&ip->dst_addr, sizeof(ip->src_addr));
	if (ports)
		swap((uint8_t *)&ports[0], (uint8_t *)&ports[1], sizeof(ports[0]));
}

/* A reply to the last packet sent, modified by the given bytes. */
static void make_reply(struct rte_mbuf *packet, const uint8_t *bytes, uint16_t length)
{
	uint8_t *to = (uint8_t *)rte_pktmbuf_append(packet, sent.length);

	memcpy(to, sent.bytes, sent.length);
	turn_around(packet);
	for (uint16_t i = 0; i < RTE_MIN(length, sent.length); i++)
		to[i] ^= bytes[i];
}

/* Make it IPv4 without options, with consistent lengths. */
static void put_in_order(struct rte_mbuf *packet)
{
	struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(packet, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ethernet + 1);
	const uint16_t length = rte_pktmbuf_data_len(packet);

	if (length < sizeof(*ethernet) + sizeof(*ip))
		return;
	ethernet->dst_addr.addr_bytes[0] &= ~1;
	ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16(length - sizeof(*ethernet));
}

/* The same for IPv6. */
static void put_ipv6_in_order(struct rte_mbuf *packet)
{
	struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(packet, struct rte_ether_hdr *);
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(ethernet + 1);
	const uint16_t headers = sizeof(*ethernet) + sizeof(*ip);

	if (rte_pktmbuf_data_len(packet) < headers)
		return;
	ethernet->dst_addr.addr_bytes[0] &= ~1;
	ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(rte_pktmbuf_data_len(packet) - headers);
}

/* The sequence number that is due in the stream of the last segment, of this input. */
static uint32_t due;

/* Give a segment of TCP the number that is due, 4 less to 3 more by its own, and note the next one. */
static void put_sequence(struct rte_mbuf *packet, bool is_due)
{
	const struct packet headers = packet_behind_extensions(packet, packet_parse_any(packet));
	struct rte_tcp_hdr *tcp;

	if (headers.protocol != IPPROTO_TCP || headers.payload == 0)
		return;
	tcp = rte_pktmbuf_mtod_offset(packet, struct rte_tcp_hdr *, headers.l4);
	if (is_due) {
		const uint8_t near = tcp->sent_seq & 0x87;

		tcp->sent_seq = rte_cpu_to_be_32(due + (near & 0x80 ? near & 7 : 4) - 4);
	}
	due = rte_be_to_cpu_32(tcp->sent_seq) + headers.payload_length +
	      ((tcp->tcp_flags & RTE_TCP_SYN_FLAG) != 0);
}

/* The header of the last fragment made, of this input. */
static struct rte_ipv4_hdr fragment;

/*
 * Make an IPv4 packet without options a fragment, not the last one if `flags` have MORE. With
 * BEHIND it continues the fragment before it, less or more far behind by the bytes of its offset.
 */
static void make_fragment(struct rte_mbuf *packet, uint8_t flags)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *,
							  sizeof(struct rte_ether_hdr));
	const uint16_t length = rte_pktmbuf_data_len(packet);
	const uint16_t headers = sizeof(struct rte_ether_hdr) + sizeof(*ip);
	uint16_t offset = 0, shift;

	if (length < headers)
		return;
	if (flags & MORE)
		rte_pktmbuf_trim(packet, (length - headers) % 8);
	if (flags & BEHIND) {
		shift = rte_be_to_cpu_16(ip->fragment_offset);
		offset = rte_be_to_cpu_16(fragment.fragment_offset) + (shift >> 2 & 3) -
			 (shift & 3) +
			 (rte_be_to_cpu_16(fragment.total_length) - sizeof(*ip) + 7) / 8;
		ip->packet_id = fragment.packet_id;
		ip->next_proto_id = fragment.next_proto_id;
		ip->src_addr = fragment.src_addr;
		ip->dst_addr = fragment.dst_addr;
	}
	ip->fragment_offset = rte_cpu_to_be_16((offset & RTE_IPV4_HDR_OFFSET_MASK) |
					       (flags & MORE ? RTE_IPV4_HDR_MF_FLAG : 0));
	put_in_order(packet);
	fragment = *ip;
}

static void put_checksum(struct rte_mbuf *packet)
{
	const struct packet headers = packet_parse_any(packet);
	struct rte_ipv4_hdr *ip;

	if (!packet_has_ipv4(&headers))
		return;
	ip = packet_ipv4(packet, &headers);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (rte_be16_t)~rte_raw_cksum(ip, rte_ipv4_hdr_len(ip));
}

/* The next packet of an input; NULL at its end. */
static struct rte_mbuf *next_packet(struct input *input)
{
	const uint8_t *head = take(input, HEAD), *bytes;
	struct rte_mbuf *packet;
	uint16_t length;

	if (!head)
		return NULL;
	length =
		RTE_MIN((size_t)((head[LENGTH] << 8 | head[LENGTH + 1]) % MOST_BYTES), input->left);
	packet = rte_pktmbuf_alloc(pool);
	if (!packet)
		return NULL;
	buffer_unpoison(pool, NULL, packet, 0);
	bytes = take(input, length);
	if (head[WHAT] & REPLY)
		make_reply(packet, bytes, length);
	else
		memcpy(rte_pktmbuf_append(packet, length), bytes, length);
	metadata_begin(packet, head[WHAT] & SIDE ? NF_OUTSIDE : NF_INSIDE, 0);
	if (head[WHAT] & IPV6)
		put_ipv6_in_order(packet);
	else if (head[WHAT] & ORDERED)
		put_in_order(packet);
	put_sequence(packet, head[WHAT] & DUE);
	if (head[WHAT] & (MORE | BEHIND))
		make_fragment(packet, head[WHAT]);
	if (head[WHAT] & SUMMED)
		put_checksum(packet);
	packet_poison(packet);
	return packet;
}

static struct nf *make(const struct nf_kind *kind, bool pipeline)
{
	static const struct nf_setting small[] = {
		{"flows", 64},    {"routes", 1000},    {"filters", 100}, {"sessions", 64},
		{"addresses", 1}, {"connections", 64}, {"pending", 8},   {"urls", 100},
		{"packets", 64},  {"streams", 4},
		{"hmac_key", 0, ""}, /* whose values no fuzzer guesses */
	};
	const bool needs_key = strcmp(kind->name, "IPSec") == 0;
	const enum nf_execution wanted = pipeline ? NF_PIPELINE : NF_RUN_TO_COMPLETION;
	struct nf_config config = {.name = kind->name, .spare = spare};
	struct nf_setting settings[RTE_DIM(small)];
	unsigned int n = 0;

	if (kind->executions & wanted) /* otherwise it has only one */
		config.execution = wanted;
	for (unsigned int i = 0; i < RTE_DIM(small); i++)
		for (unsigned int p = 0; p < kind->n_parameters; p++)
			if (!kind->parameters[p].text == !small[i].text &&
			    !(needs_key && small[i].text) &&
			    strcmp(kind->parameters[p].name, small[i].name) == 0)
				settings[n++] = small[i];
	memcpy(config.accelerators, accelerators, sizeof(accelerators));
	return nf_create(&config, settings, n);
}

/* Whether every accelerator that a function uses was built. */
static bool can_run(const struct nf_kind *kind)
{
	for (int i = 0; i < ACCELERATOR_KINDS; i++)
		if ((kind->accelerators & NF_USES(i)) && !accelerators[i])
			return false;
	return true;
}

/* The function that a byte selects; it is reused if it was slow to create. */
static struct nf *chosen(uint8_t choice, bool *reuse)
{
	const struct nf_kind *kinds[MOST_KINDS];
	const bool pipeline = choice & 0x80;
	const uint64_t begin = rte_rdtsc();
	unsigned int n = 0, which;
	struct nf *nf;

	for (const struct nf_kind *kind = nf_first(); kind && n < MOST_KINDS; kind = kind->next)
		if (can_run(kind))
			kinds[n++] = kind;
	which = (choice & 0x7f) % n;
	*reuse = kept[which][pipeline] != NULL;
	if (*reuse)
		return kept[which][pipeline];
	nf = make(kinds[which], pipeline);
	*reuse = rte_rdtsc() - begin > rte_get_tsc_hz() / 1000 * LONG_MS;
	if (*reuse)
		kept[which][pipeline] = nf;
	return nf;
}

/* Microseconds that pass before the next packet; it is of the same burst when none do. */
static uint64_t time_passed(const struct input *input)
{
	const uint8_t time = input->left >= HEAD ? input->bytes[TIME] : 0;

	return time ? 1ull << time % 40 : 0;
}

static uint16_t next_burst(struct input *input, struct rte_mbuf **burst)
{
	uint16_t n = 0;

	do {
		burst[n] = next_packet(input);
		n += burst[n] != NULL;
	} while (n < NF_BURST && input->left >= HEAD && time_passed(input) == 0);
	return n;
}

/* The packets of an input in bursts, until it ends. */
static void offer(struct nf *nf, struct input *input)
{
	struct rte_mbuf *burst[NF_BURST];

	sent.length = due = 0;
	memset(&fragment, 0, sizeof(fragment));
	while (input->left >= HEAD) {
		nf->now_us += time_passed(input);
		nf_process(nf, burst, next_burst(input, burst), &out);
		remember_sent();
	}
	nf_flush(nf, &out);
	nf_out_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = {bytes, size};
	const uint8_t *choice = take(&input, 1);
	struct nf *nf;
	bool reuse;

	if (!choice)
		return 0;
	nf = chosen(*choice, &reuse);
	if (!nf)
		fail("cannot create the function");
	nf->now_us++;
	offer(nf, &input);
	if (!reuse)
		nf_destroy(nf);
	pool_unpoison(pool);
	if (rte_mempool_in_use_count(pool) || rte_mempool_in_use_count(spare))
		fail("a packet leaked");
	return 0;
}
