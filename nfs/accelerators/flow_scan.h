/*
 * Flow statistics with a scan of payloads, shared by FlowMonitor and NIDS, which differ in what
 * they do with a completed scan.
 */
#pragma once

#include "accelerators/scan.h"
#include "core/flow_table.h"

/* The first parameters and counters of such a function. */
enum {
	FLOW_SCAN_QUEUES = FLOW_PARAMETERS,
	FLOW_SCAN_WINDOW,
	FLOW_SCAN_FILE,
	FLOW_SCAN_UNKNOWN,
	FLOW_SCAN_PARAMETERS = FLOW_SCAN_UNKNOWN + 2
};
#define FLOW_SCAN_DECLARE_PARAMETERS(unknown)                                                      \
	FLOW_TABLE_PARAMETERS, [FLOW_SCAN_QUEUES] = {OFFLOAD_QUEUES},                              \
			       [FLOW_SCAN_WINDOW] = {OFFLOAD_WINDOW},                              \
			       [FLOW_SCAN_FILE] = {SCAN_FILE},                                     \
			       NF_OTHER_PARAMETERS(FLOW_SCAN_UNKNOWN, unknown, "pass")

enum { FLOW_SCAN_SCANS = FLOW_COUNTERS, FLOW_SCAN_COUNTERS = FLOW_SCAN_SCANS + SCAN_COUNTERS };
#define FLOW_SCAN_DECLARE_COUNTERS FLOW_TABLE_COUNTERS, SCAN_COUNTERS_FROM(FLOW_SCAN_SCANS)

/* The state of such a function. */
struct flow_scan {
	struct offload offload;
	struct flow_table table;
	struct stream_scan streams; /* follows none, unless the function so creates it */
	unsigned int drops_missed; /* the counter of packets not scanned completely; 0: they pass */
};

/* Its callbacks. */
int flow_scan_create(struct nf *nf, offload_completion completed);
void flow_scan_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out);
void flow_scan_destroy(struct nf *nf);

/*
 * The mark of a packet's flow; NULL if the table was full. The flow could be replaced by another
 * one during the scan, but scans take microseconds and timeouts at least milliseconds.
 */
static inline uint64_t *flow_scan_mark(struct nf *nf, const struct offloaded *offloaded)
{
	const struct flow_scan *scan = nf->state;

	if (offloaded->place < 0)
		return NULL;
	return &flow_table_at(&scan->table, offloaded->place)->mark;
}
