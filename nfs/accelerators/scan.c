#include "accelerators/scan.h"

struct offloaded *scan_packet(struct offload *offload, struct rte_mbuf *packet, uint64_t *counters)
{
	const struct packet headers = packet_parse(packet);
	struct offloaded *offloaded;
	uint8_t *payload;

	if (unlikely(headers.type == PACKET_MALFORMED)) {
		counters[SCAN_MALFORMED]++;
		rte_pktmbuf_free(packet);
		return NULL;
	}
	offloaded = offload_hold(offload, packet, &headers);
	if (unlikely(headers.type != PACKET_IPV4)) {
		counters[SCAN_OTHER]++;
		return offloaded;
	}
	offloaded->job.length = packet_payload(packet, &headers, &payload);
	if (offloaded->job.length == 0)
		return offloaded;
	offloaded->job.input = payload;
	counters[SCAN_SCANNED]++;
	counters[SCAN_PARTIAL] += offloaded->job.length < headers.payload_length;
	offload_ask(offload, ACCELERATOR_REGEX, offloaded);
	return offloaded;
}

bool scan_matched(const struct offloaded *offloaded, uint64_t *counters)
{
	if (unlikely(offloaded->job.status < 0)) {
		counters[SCAN_FAILED]++;
		return false;
	}
	counters[SCAN_MATCHES] += offloaded->job.produced;
	return offloaded->job.produced > 0;
}
