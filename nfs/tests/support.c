#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "tests/one_core.h"
#include "tests/poison.h"

struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(rig->pool);
	void *data;

	assert_non_null(packet);
	metadata_begin(packet, NF_INSIDE, 0);
	data = rte_pktmbuf_append(packet, length);
	assert_non_null(data);
	memcpy(data, bytes, length);
	return packet;
}

static void *appended(struct rte_mbuf *packet, uint16_t length)
{
	void *data = rte_pktmbuf_append(packet, length);

	if (!data) /* the compiler does not know that cmocka's assertions end the test */
		abort();
	memset(data, 0, length);
	return data;
}

static void add_ethernet(struct rte_mbuf *packet, const struct packet_spec *packet_spec)
{
	struct rte_ether_hdr *ethernet = appended(packet, sizeof(*ethernet));

	memset(&ethernet->dst_addr, 0x02, sizeof(ethernet->dst_addr));
	memset(&ethernet->src_addr, 0x06, sizeof(ethernet->src_addr));
	ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	if (packet_spec->vlan) {
		struct rte_vlan_hdr *tag = appended(packet, sizeof(*tag));

		ethernet->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(packet_spec->vlan);
		tag->eth_proto = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	}
}

static uint16_t l4_length(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_UDP:
		return sizeof(struct rte_udp_hdr);
	case IPPROTO_TCP:
		return sizeof(struct rte_tcp_hdr);
	case IPPROTO_ICMP:
		return sizeof(struct rte_icmp_hdr);
	default:
		return 0;
	}
}

static void fill_l4(const struct packet_spec *packet_spec, uint8_t protocol,
		    struct rte_ipv4_hdr *ip, void *l4, uint16_t length)
{
	struct rte_udp_hdr *udp = l4;
	struct rte_tcp_hdr *tcp = l4;
	struct rte_icmp_hdr *icmp = l4;

	if (protocol == IPPROTO_UDP) {
		udp->src_port = rte_cpu_to_be_16(packet_spec->source_port);
		udp->dst_port = rte_cpu_to_be_16(packet_spec->destination_port);
		udp->dgram_len = rte_cpu_to_be_16(length);
		udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, l4);
	} else if (protocol == IPPROTO_TCP) {
		tcp->src_port = rte_cpu_to_be_16(packet_spec->source_port);
		tcp->dst_port = rte_cpu_to_be_16(packet_spec->destination_port);
		tcp->data_off = (sizeof(*tcp) / 4) << 4;
		tcp->tcp_flags = packet_spec->tcp_flags;
		tcp->cksum = rte_ipv4_udptcp_cksum(ip, l4);
	} else if (protocol == IPPROTO_ICMP) {
		icmp->icmp_type = RTE_IP_ICMP_ECHO_REQUEST;
		icmp->icmp_ident = rte_cpu_to_be_16(packet_spec->source_port);
		icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, length);
	}
}

struct rte_mbuf *packet_from_spec(struct rig *rig, const struct packet_spec *packet_spec)
{
	const uint8_t protocol = packet_spec->protocol ? packet_spec->protocol : IPPROTO_UDP;
	const bool non_initial = (packet_spec->fragment & RTE_IPV4_HDR_OFFSET_MASK) != 0;
	const uint16_t header = non_initial ? 0 : l4_length(protocol);
	struct rte_mbuf *packet = rte_pktmbuf_alloc(rig->pool);
	struct rte_ipv4_hdr *ip;
	uint8_t *rest;

	assert_non_null(packet);
	metadata_begin(packet, packet_spec->from, 0);
	add_ethernet(packet, packet_spec);
	ip = appended(packet, sizeof(*ip));
	rest = appended(packet, header + packet_spec->payload_length);
	if (packet_spec->payload)
		memcpy(rest + header, packet_spec->payload, packet_spec->payload_length);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length =
			rte_cpu_to_be_16(sizeof(*ip) + header + packet_spec->payload_length),
		.packet_id = rte_cpu_to_be_16(packet_spec->id),
		.fragment_offset = rte_cpu_to_be_16(packet_spec->fragment),
		.time_to_live = packet_spec->ttl ? packet_spec->ttl : 64,
		.next_proto_id = protocol,
		.src_addr = rte_cpu_to_be_32(packet_spec->source),
		.dst_addr = rte_cpu_to_be_32(packet_spec->destination),
	};
	if (!non_initial)
		fill_l4(packet_spec, protocol, ip, rest, header + packet_spec->payload_length);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return packet;
}

void assert_header_checksum(struct rte_mbuf *packet)
{
	const struct packet parsed = packet_parse(packet);
	const struct rte_ipv4_hdr *ip;

	assert_true(parsed.type == PACKET_IPV4 || parsed.type == PACKET_MALFORMED);
	assert_int_not_equal(parsed.l3, 0);
	ip = packet_ipv4(packet, &parsed);
	assert_int_equal(rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)), 0xffff);
}

bool checksums_right(struct rte_mbuf *mbuf)
{
	const struct packet packet = packet_parse(mbuf);
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;

	if (packet.type != PACKET_IPV4)
		return false;
	ip = packet_ipv4(mbuf, &packet);
	if (rte_raw_cksum(ip, rte_ipv4_hdr_len(ip)) != 0xffff)
		return false;
	if (packet.fragment || packet.l4 == 0)
		return true;
	udp = rte_pktmbuf_mtod_offset(mbuf, const struct rte_udp_hdr *, packet.l4);
	if (packet.protocol == IPPROTO_ICMP)
		return rte_raw_cksum(udp, rte_be_to_cpu_16(ip->total_length) -
						  rte_ipv4_hdr_len(ip)) == 0xffff;
	if (packet.protocol == IPPROTO_UDP && udp->dgram_cksum == 0)
		return true;
	return rte_ipv4_udptcp_cksum_verify(ip, udp) == 0;
}

int setup(void **state)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	snprintf(name, sizeof(name), "packets_%u", n_created);
	rig->pool = rte_pktmbuf_pool_create(name, RIG_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					    SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "spare_%u", n_created++);
	rig->spare = rte_pktmbuf_pool_create(name, RIG_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					     SOCKET_ID_ANY);
	assert_non_null(rig->pool);
	assert_non_null(rig->spare);
	*state = rig;
	return 0;
}

void rig_own(struct rig *rig, void *owned, void (*owned_free)(void *owned))
{
	if (rig->owned)
		rig->owned_free(rig->owned);
	rig->owned = owned;
	rig->owned_free = owned_free;
}

int teardown(void **state)
{
	struct rig *rig = *state;

	rig_own(rig, NULL, NULL);
	nf_out_free(&rig->out);
	if (rig->nf) {
		nf_flush(rig->nf, &rig->out);
		nf_out_free(&rig->out);
	}
	nf_destroy(rig->nf);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
	assert_int_equal(rte_mempool_in_use_count(rig->spare), 0);
	rte_mempool_free(rig->pool);
	rte_mempool_free(rig->spare);
	free(rig);
	return 0;
}

struct nf *rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
		    unsigned int n_settings)
{
	struct nf_config config = {.name = name, .spare = rig->spare, .execution = rig->execution};

	memcpy(config.accelerators, rig->accelerators, sizeof(config.accelerators));
	nf_destroy(rig->nf);
	rig->nf = nf_create(&config, settings, n_settings);
	assert_non_null(rig->nf);
	return rig->nf;
}

uint64_t nf_count(const struct nf *nf, const char *counter)
{
	for (unsigned int i = 0; i < nf->kind->n_counters; i++)
		if (strcmp(nf->kind->counters[i].name, counter) == 0)
			return nf->counters[i];
	fail_msg("%s has no counter %s", nf->kind->name, counter);
	return 0;
}

uint64_t rig_count(const struct rig *rig, const char *counter)
{
	return nf_count(rig->nf, counter);
}

void rig_check_counts(const struct rig *rig, const struct rig_counted *counts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rig_count(rig, counts[i].counter) != counts[i].n)
			fail_msg("%s is %" PRIu64 ", not %" PRIu64, counts[i].counter,
				 rig_count(rig, counts[i].counter), counts[i].n);
}

#define MOST_BUFFERS 1024

void rig_process(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	struct buffer {
		void *bytes;
		uint16_t length;
	} buffers[MOST_BUFFERS];
	unsigned int poisoned = 0;

	nf_out_free(&rig->out);
	rig->nf->now_us = now_us;
	for (uint16_t i = 0; i < n; i++) {
		packet_poison(packets[i]);
		/* noted here, because a function may free them; a whole pool takes long to walk */
		for (struct rte_mbuf *at = packets[i]; at; at = at->next) {
			assert_true(poisoned < MOST_BUFFERS);
			buffers[poisoned++] = (struct buffer){at->buf_addr, at->buf_len};
		}
	}
	nf_process(rig->nf, packets, n, &rig->out);
	for (unsigned int i = 0; i < poisoned; i++)
		ASAN_UNPOISON_MEMORY_REGION(buffers[i].bytes, buffers[i].length);
}

void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	rig_process(rig, packets, n, now_us);
	nf_flush(rig->nf, &rig->out);
}

void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us)
{
	rig_offer_burst(rig, &packet, 1, now_us);
}

void rig_frees(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us)
{
	rig_offer(rig, packet, now_us);
	assert_int_equal(rig->out.n, 0);
}

struct rte_mbuf *rig_sent(const struct rig *rig)
{
	assert_int_equal(rig->out.n, 1);
	return rig->out.packets[0];
}

/* A valid TCP packet of 40 bytes behind Ethernet with one invalid part. */
static struct rte_mbuf *malformed_packet(struct rig *rig, int part)
{
	struct rte_mbuf *packet =
		packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							    .destination = RTE_IPV4(10, 0, 0, 2),
							    .protocol = IPPROTO_TCP,
							    .source_port = 1,
							    .destination_port = 2});
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, 14);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	switch (part) {
	case 0: /* invalid version */
		ip->version_ihl = 0x35;
		break;
	case 1: /* header length below the minimum */
		ip->version_ihl = 0x44;
		break;
	case 2: /* missing options */
		ip->version_ihl = 0x4f;
		rte_pktmbuf_trim(packet, 10);
		break;
	case 3: /* total length above the packet's */
		ip->total_length = RTE_BE16(1500);
		break;
	case 4: /* total length below the header's */
		ip->total_length = RTE_BE16(19);
		break;
	case 5: /* TCP header length below the minimum */
		tcp->data_off = 4 << 4;
		break;
	case 6: /* missing TCP options */
		tcp->data_off = 15 << 4;
		break;
	default:
		rte_pktmbuf_free(packet);
		return NULL;
	}
	return packet;
}

void rig_check_unknown(struct rig *rig, const char *name)
{
	const uint8_t arp[60] = {[12] = 0x08, [13] = 0x06}, ipv6[60] = {[12] = 0x86, [13] = 0xdd};
	const struct nf_setting settings[] = {{"unknown", .text = "pass"}, {"arp", .text = "pass"}};

	for (unsigned int n = 0; n <= RTE_DIM(settings); n++) {
		rig_make(rig, name, settings, n);
		rig_offer(rig, packet_of(rig, ipv6, sizeof(ipv6)), 1);
		assert_int_equal(rig->out.n, n > 0);
		rig_offer(rig, packet_of(rig, arp, sizeof(arp)), 1);
		assert_int_equal(rig->out.n, n > 1);
		assert_counts(rig, {"other", n}, {"unknown", 2 - n}, {"malformed", 0});
	}
}

void offer_malformed(struct rig *rig)
{
	static const uint8_t zeros[64];
	struct rte_mbuf *packet;

	for (uint16_t length = 0; length < 14; length++)
		rig_offer(rig, packet_of(rig, zeros, length), 1);
	for (int part = 0; (packet = malformed_packet(rig, part)) != NULL; part++)
		rig_offer(rig, packet, 1);
	for (uint16_t shorter = 1; shorter <= 40;
	     shorter++) { /* truncated at every byte behind Ethernet */
		packet = packet_from_spec(rig, &(struct packet_spec){.protocol = IPPROTO_TCP});
		assert_return_code(rte_pktmbuf_trim(packet, shorter), 0);
		rig_offer(rig, packet, 1);
	}
}

int test_main(const char *name, const struct CMUnitTest *tests, size_t n)
{
	int failed;

	if (!start_on_one_core(name, "512"))
		return EXIT_FAILURE;
	failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	rte_eal_cleanup();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
