/*
 * FlowMonitor: counts packets, bytes and rule matches of every flow, with aging. All packets pass.
 */
#include "accelerators/flow_scan.h"

static const struct nf_parameter parameters[] = {FLOW_SCAN_DECLARE_PARAMETERS("pass")};

enum { MATCHING_FLOWS = FLOW_SCAN_COUNTERS };
static const struct nf_counter counters[] = {
	FLOW_SCAN_DECLARE_COUNTERS,
	[MATCHING_FLOWS] = {"matching_flows", "flows with a match"},
};

/* A flow's mark is its number of matches. */
static void completed(struct nf *nf, struct offloaded *offloaded)
{
	const bool matched = scan_matched(offloaded, &nf->counters[FLOW_SCAN_SCANS]);
	uint64_t *matches = flow_scan_mark(nf, offloaded);

	offloaded->action = OFFLOAD_SEND;
	if (!matched || !matches)
		return;
	nf->counters[MATCHING_FLOWS] += *matches == 0;
	*matches += offloaded->job.produced;
}

static int create(struct nf *nf)
{
	return flow_scan_create(nf, completed);
}

NF_KIND("FlowMonitor", "counts packets, bytes and rule matches of every flow, with aging",
	OFFLOADS(NF_USES(ACCELERATOR_REGEX)), .default_execution = NF_PIPELINE,
	.state_bytes = sizeof(struct flow_scan), .create = create, .process = flow_scan_process,
	.destroy = flow_scan_destroy)
