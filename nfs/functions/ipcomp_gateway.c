/*
 * IPCompGateway: scans payloads for rules, then compresses the payload of IPv4 (IPComp, RFC 3173,
 * by DEFLATE, RFC 2394): header and payload of UDP, TCP and ICMP. Packets leave uncompressed if
 * they would not shrink, are fragments, are small, or do not fit one buffer.
 */
#include <errno.h>
#include <stdio.h>

#include "accelerators/scan.h"
#include "core/memory.h"

#define MOST_BYTES 2048
#define CPI_DEFLATE 2 /* RFC 2394, section 3 */
#define IPPROTO_IPCOMP 108

enum { QUEUES, WINDOW, FILE_OF_RULES, LEAST_BYTES, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[QUEUES] = {OFFLOAD_QUEUES},
	[WINDOW] = {OFFLOAD_WINDOW},
	[FILE_OF_RULES] = {SCAN_FILE},
	[LEAST_BYTES] = {"least_bytes", "smallest IPv4 payload to compress, bytes", 8, MOST_BYTES,
			 90},
	NF_OTHER_PARAMETERS(UNKNOWN, "pass", "pass"),
};

enum {
	SCANS,
	COMPRESSED = SCANS + SCAN_COUNTERS,
	UNSHRUNK,
	UNBUFFERED,
	SKIPPED,
	BYTES_IN,
	BYTES_OUT,
};
static const struct nf_counter counters[] = {
	SCAN_COUNTERS_FROM(SCANS),
	[COMPRESSED] = {"compressed", "packets compressed"},
	[UNSHRUNK] = {"unshrunk", "packets that would not shrink"},
	[UNBUFFERED] = {"unbuffered", "packets sent uncompressed without a buffer"},
	[SKIPPED] = {"skipped",
		     "scanned packets that are fragments, small, or too long for a buffer"},
	[BYTES_IN] = {"bytes_in", "bytes of the IPv4 payload before compression"},
	[BYTES_OUT] = {"bytes_out", "bytes of the IPv4 payload after compression"},
};

/* RFC 3173, section 3 */
struct ipcomp_hdr {
	uint8_t next_header;
	uint8_t flags; /* always 0 */
	rte_be16_t cpi;
};

struct gateway {
	struct offload offload;
	uint8_t (*outputs)[MOST_BYTES]; /* one for each held packet */
};

static uint16_t behind_ipv4(const struct offloaded *offloaded)
{
	const struct packet *headers = &offloaded->headers;

	return headers->payload + headers->payload_length - headers->l4;
}

static bool is_worth_it(const struct nf *nf, const struct offloaded *offloaded)
{
	const uint16_t length = behind_ipv4(offloaded);

	return !offloaded->headers.fragment && offloaded->packet->nb_segs == 1 &&
	       length <= MOST_BYTES && length >= nf->settings[LEAST_BYTES];
}

static void scanned(struct nf *nf, struct offloaded *offloaded)
{
	struct gateway *gateway = nf->state;
	struct accelerator_job *job = &offloaded->job;

	scan_matched(offloaded, &nf->counters[SCANS]);
	if (!is_worth_it(nf, offloaded)) {
		offloaded->action = OFFLOAD_SEND;
		nf->counters[SKIPPED]++;
		return;
	}
	job->input =
		rte_pktmbuf_mtod_offset(offloaded->packet, const uint8_t *, offloaded->headers.l4);
	job->length = behind_ipv4(offloaded);
	job->output = gateway->outputs[offloaded - gateway->offload.held];
	/* the result includes a further header and must still be smaller */
	job->room = job->length - sizeof(struct ipcomp_hdr) - 1;
	offload_request(&gateway->offload, ACCELERATOR_COMPRESSION, offloaded);
}

/* Set the IPv4 header of a packet whose payload is now IPComp, `length` bytes in all. */
static void set_ipcomp_header(struct rte_ipv4_hdr *ip, uint16_t length)
{
	const rte_be16_t total = rte_cpu_to_be_16(length);
	const rte_be16_t was = rte_cpu_to_be_16(ip->time_to_live << 8 | ip->next_proto_id);
	const rte_be16_t is = rte_cpu_to_be_16(ip->time_to_live << 8 | IPPROTO_IPCOMP);

	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, ip->total_length, total);
	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, was, is);
	ip->total_length = total;
	ip->next_proto_id = IPPROTO_IPCOMP;
}

/*
 * Into a new packet: the sender may reuse the payload of the received one. NULL without a buffer.
 */
static struct rte_mbuf *compressed_packet(struct nf *nf, const struct offloaded *offloaded)
{
	const struct packet *headers = &offloaded->headers;
	const uint16_t length = (uint16_t)offloaded->job.produced;
	const uint8_t *from = rte_pktmbuf_mtod(offloaded->packet, const uint8_t *);
	struct rte_mbuf *packet = nf->spare ? rte_pktmbuf_alloc(nf->spare) : NULL;
	struct ipcomp_hdr *ipcomp;
	uint8_t *to;

	if (!packet)
		return NULL;
	/* it fits, because it shrank and buffers have the same size */
	to = (uint8_t *)rte_pktmbuf_append(packet, headers->l4 + sizeof(*ipcomp) + length);
	if (!to) {
		rte_pktmbuf_free(packet);
		return NULL;
	}
	metadata_inherit(packet, offloaded->packet);
	memcpy(to, from, headers->l4);
	ipcomp = (struct ipcomp_hdr *)(to + headers->l4);
	*ipcomp = (struct ipcomp_hdr){
		.next_header = packet_ipv4(packet, headers)->next_proto_id,
		.cpi = RTE_BE16(CPI_DEFLATE),
	};
	memcpy(ipcomp + 1, offloaded->job.output, length);
	set_ipcomp_header(packet_ipv4(packet, headers),
			  headers->l4 - headers->l3 + sizeof(*ipcomp) + length);
	return packet;
}

static void compressed(struct nf *nf, struct offloaded *offloaded)
{
	const struct accelerator_job *job = &offloaded->job;
	struct rte_mbuf *packet;

	offloaded->action = OFFLOAD_SEND;
	if (job->status < 0) {
		nf->counters[UNSHRUNK]++;
		return;
	}
	packet = compressed_packet(nf, offloaded);
	if (!packet) {
		nf->counters[UNBUFFERED]++;
		return;
	}
	nf->counters[COMPRESSED]++;
	nf->counters[BYTES_IN] += job->length;
	nf->counters[BYTES_OUT] += sizeof(struct ipcomp_hdr) + job->produced;
	rte_pktmbuf_free(offloaded->packet);
	offloaded->packet = packet;
}

static void destroy(struct nf *nf)
{
	struct gateway *gateway = nf->state;

	scan_destroy(nf, &gateway->offload, QUEUES);
	nf_free(gateway->outputs);
}

static int create(struct nf *nf)
{
	const offload_completion completed[ACCELERATOR_KINDS] = {
		[ACCELERATOR_REGEX] = scanned, [ACCELERATOR_COMPRESSION] = compressed};
	struct gateway *gateway = nf->state;
	const int error = scan_create(&gateway->offload, nf, QUEUES, completed);

	if (error < 0)
		return error;
	gateway->outputs = nf_zalloc((gateway->offload.mask + 1) * sizeof(*gateway->outputs));
	if (gateway->outputs)
		return 0;
	fprintf(stderr, "IPCompGateway: no memory for %u compressed packets\n",
		gateway->offload.mask + 1);
	return -ENOMEM;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct gateway *gateway = nf->state;

	offload_begin(&gateway->offload, n, out);
	for (uint16_t i = 0; i < n; i++) {
		struct packet headers = packet_headers(packets[i]);

		if (unlikely(headers.type == PACKET_IPV6)) /* which it does not compress */
			headers.type = PACKET_OTHER;
		scan_packet(&gateway->offload, packets[i], &headers, &nf->counters[SCANS],
			    NULL);
	}
	offload_end(&gateway->offload, out);
}

NF_KIND("IPCompGateway", "scans payloads, then compresses the payload of IPv4 (IPComp)",
	OFFLOADS(NF_USES(ACCELERATOR_REGEX) | NF_USES(ACCELERATOR_COMPRESSION)),
	.default_execution = NF_PIPELINE, .state_bytes = sizeof(struct gateway), .create = create,
	.process = process, .destroy = destroy)
