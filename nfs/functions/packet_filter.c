/*
 * PacketFilter: drops packets whose payload matches a rule, and those that could not be scanned
 * completely, including non-initial fragments, and frames that are not understood, unless `unknown`;
 * other packets pass, and so do other protocols than UDP, TCP and ICMP. To let fragments pass,
 * reassemble datagrams before it.
 */
#include <errno.h>

#include "accelerators/scan.h"
#include "core/memory.h"

enum { QUEUES, WINDOW, FILE_OF_RULES, UNKNOWN, ARP };
static const struct nf_parameter parameters[] = {
	[QUEUES] = {OFFLOAD_QUEUES},
	[WINDOW] = {OFFLOAD_WINDOW},
	[FILE_OF_RULES] = {SCAN_FILE},
	[UNKNOWN] = {NF_UNKNOWN("drop")},
	[ARP] = {NF_ARP},
};

enum { SCANS, DROPPED = SCANS + SCAN_COUNTERS };
static const struct nf_counter counters[] = {
	SCAN_COUNTERS_FROM(SCANS),
	[DROPPED] = {"dropped", "packets freed because they match or were not scanned completely"},
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

static int create(struct nf *nf)
{
	struct offload *offload = nf_zalloc_for(nf->kind->name, sizeof(*offload));
	int error = -ENOMEM;

	if (offload)
		error = scan_create(
			offload, nf, QUEUES,
			(offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_REGEX] = completed});
	if (error < 0)
		nf_free(offload);
	else
		nf->state = offload;
	return error;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct offload *offload = nf->state;

	offload_begin(offload, n, out);
	for (uint16_t i = 0; i < n; i++) {
		struct offloaded *offloaded =
			scan_packet(offload, packets[i], packet_ip_headers(packets[i]),
				    &nf->counters[SCANS]);

		/* without a job there is no completion */
		if (offloaded && offloaded->action == OFFLOAD_SEND && scan_missed(offloaded))
			drop(nf, offloaded);
	}
	offload_end(offload, out);
}

static void destroy(struct nf *nf)
{
	scan_destroy(nf->state, QUEUES);
	nf_free(nf->state);
}

NF_KIND("PacketFilter", "drops packets whose payload matches a rule",
	OFFLOADS(NF_USES(ACCELERATOR_REGEX)), .default_execution = NF_PIPELINE, .create = create,
	.process = process, .destroy = destroy)
