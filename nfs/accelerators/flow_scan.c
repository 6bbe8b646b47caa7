#include "accelerators/flow_scan.h"

#include <errno.h>
#include <stdio.h>

#include "core/memory.h"

int flow_scan_create(struct nf *nf, offload_completion completed)
{
	struct flow_scan *scan = nf_zalloc(sizeof(*scan));
	int error;

	if (!scan) {
		fprintf(stderr, "%s: no memory\n", nf->kind->name);
		return -ENOMEM;
	}
	error = flow_table_create(&scan->table, nf);
	if (error < 0) {
		nf_free(scan);
		return error;
	}
	error = scan_use_file(nf, nf->texts[FLOW_SCAN_FILE]);
	if (error < 0) {
		flow_table_destroy(&scan->table);
		nf_free(scan);
		return error;
	}
	error = offload_create(
		&scan->offload, nf, (unsigned int)nf->settings[FLOW_SCAN_QUEUES],
		(unsigned int)nf->settings[FLOW_SCAN_WINDOW],
		(offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_REGEX] = completed});
	if (error < 0) {
		scan_leave_file(nf, nf->texts[FLOW_SCAN_FILE]);
		flow_table_destroy(&scan->table);
		nf_free(scan);
		return error;
	}
	nf->state = scan;
	return 0;
}

void flow_scan_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_scan *scan = nf->state;
	struct offloaded *held[NF_BURST];
	struct flow_burst burst;
	int32_t places[NF_BURST];

	flow_table_age(&scan->table, nf);
	offload_begin(&scan->offload, n, out);
	flow_burst_begin(&burst);
	for (uint16_t i = 0; i < n; i++) {
		struct offloaded *offloaded =
			scan_packet(&scan->offload, packets[i], &nf->counters[FLOW_SCAN_SCANS]);

		if (unlikely(!offloaded || offloaded->headers.type != PACKET_IPV4))
			continue;
		held[burst.n] = offloaded;
		burst.l3[burst.n] = offloaded->headers.l3;
		flow_burst_add(&burst, packets[i], packet_flow(packets[i], &offloaded->headers));
		flow_table_begin(&scan->table.index, &burst, burst.n - 1);
	}
	if (likely(burst.n > 0))
		flow_table_count(&scan->table, nf, &burst, places, NULL);
	for (uint16_t i = 0; i < burst.n; i++)
		held[i]->place = places[i];
	offload_end(&scan->offload, out);
}

void flow_scan_poll(struct nf *nf, struct nf_out *out)
{
	struct flow_scan *scan = nf->state;

	offload_poll(&scan->offload, out);
}

void flow_scan_flush(struct nf *nf, struct nf_out *out)
{
	struct flow_scan *scan = nf->state;

	offload_flush(&scan->offload, out);
}

void flow_scan_destroy(struct nf *nf)
{
	struct flow_scan *scan = nf->state;

	offload_destroy(&scan->offload);
	scan_leave_file(nf, nf->texts[FLOW_SCAN_FILE]);
	flow_table_destroy(&scan->table);
	nf_free(scan);
}
