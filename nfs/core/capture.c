#include "core/capture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <pcap/pcap.h>
#include <rte_errno.h>

#include "core/memory.h"
#include "core/nf.h"

#define HEAD 128 /* bytes at the start that functions rewrite; they are restored */

/* The original of each packet: functions change the buffer. */
struct original {
	uint16_t length;
	uint8_t head[HEAD];
};

struct capture {
	struct rte_mempool *pool;
	uint32_t number; /* of the next packet */
};

/* Store the bytes of a packet; false if it was truncated or is larger than a buffer. */
static bool store_packet(struct rte_mbuf *packet, const struct pcap_pkthdr *header,
			 const u_char *bytes)
{
	struct original *original = rte_mbuf_to_priv(packet);

	if (header->caplen != header->len || header->caplen > rte_pktmbuf_tailroom(packet))
		return false;
	original->length = header->caplen;
	memcpy(original->head, bytes, RTE_MIN(header->caplen, (uint32_t)HEAD));
	memcpy(rte_pktmbuf_mtod(packet, void *), bytes, header->caplen);
	return true;
}

static pcap_t *opened(const char *path)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *file = pcap_open_offline(path, why);

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, why);
		return NULL;
	}
	if (pcap_datalink(file) != DLT_EN10MB) {
		fprintf(stderr, "%s: not an Ethernet capture\n", path);
		pcap_close(file);
		return NULL;
	}
	return file;
}

struct packet_counts {
	uint32_t packets, too_large, too_many;
};

/* False if the file cannot be read to its end. */
static bool count_packets(pcap_t *file, struct packet_counts *packet_counts)
{
	const u_char *bytes;
	struct pcap_pkthdr *header;
	int read;

	while ((read = pcap_next_ex(file, &header, &bytes)) == 1) {
		if (header->caplen != header->len || header->caplen > RTE_MBUF_DEFAULT_DATAROOM)
			packet_counts->too_large++;
		else if (packet_counts->packets < CAPTURE_MOST)
			packet_counts->packets++;
		else
			packet_counts->too_many++;
	}
	return read == PCAP_ERROR_BREAK;
}

/* Count the usable packets of a file and print how many are skipped; 0 after printing why. */
static uint32_t packets_in(const char *path)
{
	struct packet_counts packet_counts = {0};
	pcap_t *file = opened(path);

	if (!file)
		return 0;
	if (!count_packets(file, &packet_counts)) {
		fprintf(stderr, "%s: %s\n", path, pcap_geterr(file));
		packet_counts.packets = 0;
	} else if (packet_counts.packets == 0) {
		fprintf(stderr, "%s: no packet fits a buffer\n", path);
	}
	if (packet_counts.too_large)
		fprintf(stderr, "%s: %u packets skipped: truncated or larger than a buffer\n", path,
			packet_counts.too_large);
	if (packet_counts.too_many)
		fprintf(stderr, "%s: %u packets skipped after the first %u\n", path,
			packet_counts.too_many, CAPTURE_MOST);
	pcap_close(file);
	return packet_counts.packets;
}

static struct rte_mempool *pool_for(uint32_t packets)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "capture_%u",
		 __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	return rte_pktmbuf_pool_create_by_ops(
		name, packets, 0, RTE_ALIGN(sizeof(struct original), RTE_MBUF_PRIV_ALIGN),
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, "ring_mp_sc");
}

/* Read the next packet that fits into a buffer; false at the end of the file. */
static bool fill_one(struct rte_mbuf *packet, pcap_t *file)
{
	const u_char *bytes;
	struct pcap_pkthdr *header;

	while (pcap_next_ex(file, &header, &bytes) == 1)
		if (store_packet(packet, header, bytes))
			return true;
	return false;
}

/* Store each packet in a buffer, in the order in which buffers are allocated later. */
static int fill(struct capture *capture, pcap_t *file)
{
	for (uint32_t left = rte_mempool_avail_count(capture->pool); left > 0; left--) {
		struct rte_mbuf *packet = rte_pktmbuf_alloc(capture->pool);
		bool filled;

		if (!packet)
			return -ENOMEM;
		filled = fill_one(packet, file);
		rte_pktmbuf_free(packet);
		if (!filled)
			return -EIO;
	}
	return 0;
}

struct capture *capture_open(const char *path)
{
	const uint32_t n = packets_in(path);
	struct capture *capture;
	pcap_t *file;

	if (n == 0)
		return NULL;
	capture = nf_zalloc(sizeof(*capture));
	file = opened(path);
	if (capture && file)
		capture->pool = pool_for(n);
	if (!capture || !capture->pool || fill(capture, file) < 0) {
		fprintf(stderr, "%s: no memory for its %u packets\n", path, n);
		capture_close(capture);
		capture = NULL;
	}
	if (file)
		pcap_close(file);
	return capture;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	rte_mempool_free(capture->pool);
	nf_free(capture);
}

uint16_t capture_receive(struct capture *capture, struct rte_mbuf **packets, uint16_t n)
{
	n = RTE_MIN((unsigned int)n, rte_mempool_avail_count(capture->pool));
	if (n == 0 || rte_pktmbuf_alloc_bulk(capture->pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		const struct original *original = rte_mbuf_to_priv(packets[i]);

		memcpy(rte_pktmbuf_mtod(packets[i], void *), original->head,
		       RTE_MIN(original->length, (uint16_t)HEAD));
		packets[i]->data_len = original->length;
		packets[i]->pkt_len = original->length;
		metadata_begin(packets[i], NF_INSIDE, capture->number++);
	}
	return n;
}
