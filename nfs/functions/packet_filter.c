/*
 * PacketFilter: drops packets whose payload matches a rule, and those that could not be scanned
 * completely, including non-initial fragments; other packets pass, and so does all that is not UDP,
 * TCP or ICMP in IPv4. To let fragments pass, reassemble datagrams before it.
 */
#include <errno.h>
#include <stdio.h>

#include "accelerators/scan.h"
#include "core/memory.h"

enum { QUEUES, WINDOW, FILE_OF_RULES };
static const struct nf_parameter parameters[] = {
	[QUEUES] = {OFFLOAD_QUEUES},
	[WINDOW] = {OFFLOAD_WINDOW},
	[FILE_OF_RULES] = {SCAN_FILE},
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
	struct offload *offload = nf_zalloc(sizeof(*offload));
	int error;

	if (!offload) {
		fprintf(stderr, "PacketFilter: no memory\n");
		return -ENOMEM;
	}
	error = scan_use_file(nf, nf->texts[FILE_OF_RULES]);
	if (error < 0) {
		nf_free(offload);
		return error;
	}
	error = offload_create(
		offload, nf, (unsigned int)nf->settings[QUEUES], (unsigned int)nf->settings[WINDOW],
		(offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_REGEX] = completed});
	if (error < 0) {
		scan_leave_file(nf, nf->texts[FILE_OF_RULES]);
		nf_free(offload);
	} else {
		nf->state = offload;
	}
	return error;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct offload *offload = nf->state;

	offload_begin(offload, n, out);
	for (uint16_t i = 0; i < n; i++) {
		struct offloaded *offloaded =
			scan_packet(offload, packets[i], &nf->counters[SCANS]);

		/* without a job there is no completion */
		if (offloaded && offloaded->action == OFFLOAD_SEND && scan_missed(offloaded))
			drop(nf, offloaded);
	}
	offload_end(offload, out);
}

static void poll(struct nf *nf, struct nf_out *out)
{
	offload_poll(nf->state, out);
}

static void flush(struct nf *nf, struct nf_out *out)
{
	offload_flush(nf->state, out);
}

static void destroy(struct nf *nf)
{
	offload_destroy(nf->state);
	scan_leave_file(nf, nf->texts[FILE_OF_RULES]);
	nf_free(nf->state);
}

NF_KIND("PacketFilter", "drops packets whose payload matches a rule",
	.accelerators = NF_USES(ACCELERATOR_REGEX),
	.executions = NF_PIPELINE | NF_RUN_TO_COMPLETION, .default_execution = NF_PIPELINE,
	.create = create, .process = process, .poll = poll, .flush = flush, .destroy = destroy)
