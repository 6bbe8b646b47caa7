#include "tests/dedup_rig.h"

#include <stdlib.h>

#include "core/random.h"

#define MOST_SETTINGS 4

static void free_link(void *owned)
{
	struct dedup_link *link = owned;

	nf_out_free(&link->out);
	nf_destroy(link->far);
	free(link);
}

struct dedup_link *dedup_link_make(struct rig *rig, const struct nf_setting *settings,
				   unsigned int n_settings)
{
	struct nf_setting far[MOST_SETTINGS + 1] = {{"restore", 1}};
	const struct nf_config config = {.name = "Dedup", .spare = rig->spare};
	struct dedup_link *link = calloc(1, sizeof(*link));

	assert_non_null(link);
	assert_true(n_settings <= MOST_SETTINGS);
	if (n_settings > 0)
		memcpy(far + 1, settings, n_settings * sizeof(*settings));
	link->rig = rig;
	rig_make(rig, "Dedup", settings, n_settings);
	link->far = nf_create(&config, far, 1 + n_settings);
	assert_non_null(link->far);
	rig_own(rig, link, free_link);
	return link;
}

struct rte_mbuf *dedup_encoded(struct dedup_link *link, struct rte_mbuf *packet)
{
	rig_offer(link->rig, packet, 1);
	if (link->rig->out.n == 0)
		return NULL;
	packet = rig_sent(link->rig);
	link->rig->out.n = 0;
	return packet;
}

struct rte_mbuf *dedup_restored(struct dedup_link *link, struct rte_mbuf *packet)
{
	nf_out_free(&link->out);
	nf_process(link->far, &packet, 1, &link->out);
	return link->out.n == 1 ? link->out.packets[0] : NULL;
}

uint16_t dedup_crosses(struct dedup_link *link, struct rte_mbuf *packet)
{
	uint8_t before[DEDUP_MOST_FRAME], after[DEDUP_MOST_FRAME];
	const uint16_t length = packet_bytes(packet, before, DEDUP_MOST_FRAME);
	const bool sound = packet->nb_segs > 1 || checksums_right(packet);
	struct rte_mbuf *sent = dedup_encoded(link, packet);
	uint16_t between;

	assert_non_null(sent);
	if (sent->nb_segs == 1) /* checksums are of one segment */
		assert_int_equal(checksums_right(sent), sound);
	between = (uint16_t)rte_pktmbuf_pkt_len(sent);
	sent = dedup_restored(link, sent);
	assert_non_null(sent);
	assert_int_equal(packet_bytes(sent, after, DEDUP_MOST_FRAME), length);
	assert_memory_equal(after, before, length);
	return between;
}

struct rte_mbuf *dedup_packet(struct rig *rig, const void *payload, uint16_t length)
{
	return packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							   .destination = RTE_IPV4(10, 9, 0, 1),
							   .source_port = 1000,
							   .destination_port = 2000,
							   .payload = payload,
							   .payload_length = length});
}

struct rte_mbuf *dedup_segment(struct rig *rig, const void *payload, uint16_t length,
			       uint32_t sequence)
{
	struct rte_mbuf *packet =
		packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							    .destination = RTE_IPV4(10, 9, 0, 1),
							    .source_port = 1000,
							    .destination_port = 2000,
							    .protocol = IPPROTO_TCP,
							    .tcp_flags = RTE_TCP_ACK_FLAG,
							    .payload = payload,
							    .payload_length = length});
	struct rte_ipv4_hdr *ip = ipv4_of(packet);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	tcp->sent_seq = rte_cpu_to_be_32(sequence);
	tcp->cksum = 0;
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
	return packet;
}

void random_bytes(uint64_t *random, uint8_t *bytes, uint16_t length, uint32_t symbols)
{
	for (uint16_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)random_below(random, symbols);
}
