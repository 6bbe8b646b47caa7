#include "accelerators/scan.h"

#include <errno.h>

int scan_create(struct offload *offload, struct nf *nf, unsigned int first,
		const offload_completion completed[ACCELERATOR_KINDS])
{
	const char *path = nf->texts[first + 2];

	if (*path) {
		nf->accelerators[ACCELERATOR_REGEX] =
			accelerator_create_rules(nf->kind->name, path);
		if (!nf->accelerators[ACCELERATOR_REGEX])
			return -EINVAL;
	}
	return offload_create(offload, nf, first, completed);
}

void scan_destroy(struct nf *nf, struct offload *offload, unsigned int first)
{
	offload_destroy(offload);
	if (*nf->texts[first + 2])
		accelerator_destroy(nf->accelerators[ACCELERATOR_REGEX]);
}

/* An accelerator takes a payload in one piece: linearize it if the first segment has room. */
static void linearize(struct rte_mbuf *packet, const struct packet *headers)
{
	if (unlikely(headers->payload + headers->payload_length > rte_pktmbuf_data_len(packet)))
		(void)rte_pktmbuf_linearize(
			packet); /* otherwise only the first segment is scanned */
}

/* Hold a frame that is not understood, or free it. */
static struct offloaded *hold_other(struct offload *offload, struct rte_mbuf *packet,
				    const struct packet *headers, uint64_t *counters)
{
	const struct nf *nf = offload->nf;

	if (headers->type == PACKET_ARP ? nf->passes_arp : nf->passes_unknown) {
		counters[SCAN_OTHER]++;
		return offload_hold(offload, packet, headers);
	}
	counters[SCAN_UNKNOWN]++;
	rte_pktmbuf_free(packet);
	return NULL;
}

/* Whether a packet of TCP is a whole segment, with bytes or one that opens a stream. */
static bool is_followed(const struct offloaded *offloaded)
{
	const struct packet *headers = &offloaded->headers;
	const struct rte_tcp_hdr *tcp = rte_pktmbuf_mtod_offset(
		offloaded->packet, const struct rte_tcp_hdr *, headers->l4);

	return headers->payload > 0 && !headers->fragment &&
	       offloaded->job.length == headers->payload_length &&
	       (offloaded->job.length > 0 || tcp->tcp_flags & RTE_TCP_SYN_FLAG);
}

struct offloaded *scan_packet(struct offload *offload, struct rte_mbuf *packet,
			      const struct packet *headers, uint64_t *counters,
			      struct stream_scan *streams)
{
	struct offloaded *offloaded;
	uint8_t *payload = NULL;

	if (unlikely(headers->type == PACKET_MALFORMED)) {
		counters[SCAN_MALFORMED]++;
		rte_pktmbuf_free(packet);
		return NULL;
	}
	if (unlikely(headers->type != PACKET_IPV4 && headers->type != PACKET_IPV6))
		return hold_other(offload, packet, headers, counters);
	if (unlikely(headers->payload == 0 && packet_is_opaque(headers) &&
		     !offload->nf->passes_unknown))
		return hold_other(offload, packet, headers, counters);
	offloaded = offload_hold(offload, packet, headers);
	linearize(packet, headers);
	offloaded->job.length = packet_payload(packet, headers, &payload);
	counters[SCAN_FRAGMENTS] += headers->non_initial_fragment;
	counters[SCAN_PARTIAL] += offloaded->job.length < headers->payload_length;
	offloaded->job.input = payload;
	offloaded->job.before = offloaded->job.behind = 0;
	offloaded->job.settled = false;
	offloaded->stream = NULL;
	if (streams && streams->follows && headers->protocol == IPPROTO_TCP &&
	    is_followed(offloaded) && !stream_scan_take(streams, offload, offloaded)) {
		offloaded->action = OFFLOAD_DROP;
		return offloaded;
	}
	if (offloaded->job.length == 0)
		return offloaded;
	counters[SCAN_SCANNED]++;
	offload_request(offload, ACCELERATOR_REGEX, offloaded);
	return offloaded;
}

bool scan_matched(const struct offloaded *offloaded, uint64_t *counters)
{
	stream_scan_complete(offloaded);
	if (unlikely(offloaded->job.status < 0)) {
		counters[SCAN_FAILED]++;
		return false;
	}
	counters[SCAN_MATCHES] += offloaded->job.produced;
	return offloaded->job.produced > 0;
}
