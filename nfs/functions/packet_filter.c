/*
 * PacketFilter: drops packets whose payload matches a rule, and those that could not be scanned
 * completely, including non-initial fragments, and frames that are not understood, unless `unknown`;
 * other packets pass, and so do other protocols than UDP, TCP and ICMP. To let fragments pass,
 * reassemble datagrams before it. A match may begin in another segment of a stream of TCP.
 */
#include <errno.h>

#include "accelerators/scan.h"
#include "core/memory.h"

enum { QUEUES, WINDOW, FILE_OF_RULES, STREAMS, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[QUEUES] = {OFFLOAD_QUEUES},
	[WINDOW] = {OFFLOAD_WINDOW},
	[FILE_OF_RULES] = {SCAN_FILE},
	[STREAMS] = {STREAM_SCAN_STREAMS},
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "pass"),
};

enum { SCANS, DROPPED = SCANS + SCAN_COUNTERS, SEGMENTS };
static const struct nf_counter counters[] = {
	SCAN_COUNTERS_FROM(SCANS),
	[DROPPED] = {"dropped", "packets freed because they match or were not scanned completely"},
	STREAM_SCAN_COUNTERS_FROM(SEGMENTS),
};

struct packet_filter {
	struct offload offload;
	struct stream_scan streams;
};

static void drop(struct nf *nf, struct offloaded *offloaded)
{
	offloaded->action = OFFLOAD_DROP;
	nf->counters[DROPPED]++;
}

static void completed(struct nf *nf, struct offloaded *offloaded)
{
	const bool matched = scan_matched(offloaded, &nf->counters[SCANS]);

	if (matched || offloaded->job.status < 0 || scan_missed(offloaded))
		drop(nf, offloaded);
	else
		offloaded->action = OFFLOAD_SEND;
}

static void destroy(struct nf *nf)
{
	struct packet_filter *filter = nf->state;

	stream_scan_destroy(&filter->streams);
	scan_destroy(nf, &filter->offload, QUEUES);
}

static int create(struct nf *nf)
{
	struct packet_filter *filter = nf->state;
	const int error = scan_create(
		&filter->offload, nf, QUEUES,
		(offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_REGEX] = completed});

	if (error < 0)
		return error;
	return stream_scan_create(&filter->streams, &filter->offload,
				  (uint32_t)nf->settings[STREAMS], true, &nf->counters[SEGMENTS]);
}

/* Matches that have come in part go on where they were. */
static void take_over(struct nf *nf, struct nf *from)
{
	struct packet_filter *filter = nf->state, *before = from->state;

	stream_scan_take_over(&filter->streams, &before->streams);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct packet_filter *filter = nf->state;
	struct offload *offload = &filter->offload;

	offload_begin(offload, n, out);
	for (uint16_t i = 0; i < n; i++) {
		const struct packet headers = packet_ip_headers(packets[i]);
		struct offloaded *offloaded = scan_packet(offload, packets[i], &headers,
							  &nf->counters[SCANS], &filter->streams);

		/* without a job there is no completion */
		if (offloaded && offloaded->action == OFFLOAD_SEND && scan_missed(offloaded))
			drop(nf, offloaded);
	}
	offload_end(offload, out);
}

NF_KIND("PacketFilter", "drops packets whose payload matches a rule",
	OFFLOADS(NF_USES(ACCELERATOR_REGEX)), .default_execution = NF_PIPELINE,
	.state_bytes = sizeof(struct packet_filter), .create = create, .process = process,
	.take_over = take_over, .destroy = destroy)
