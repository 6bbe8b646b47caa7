#include "accelerators/flow_scan.h"

#include <errno.h>

#include "core/memory.h"

int flow_scan_create(struct nf *nf, offload_completion completed)
{
	struct flow_scan *scan = nf->state;
	const int error = scan_create(
		&scan->offload, nf, FLOW_SCAN_QUEUES,
		(offload_completion[ACCELERATOR_KINDS]){[ACCELERATOR_REGEX] = completed});

	return error < 0 ? error : flow_table_create(&scan->table, nf);
}

void flow_scan_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct flow_scan *scan = nf->state;
	struct offloaded *held[NF_BURST];
	struct flow_burst burst;
	int32_t places[NF_BURST];

	flow_table_age(&scan->table, nf);
	offload_begin(&scan->offload, n, out);
	flow_burst_begin(&burst, nf, 0);
	for (uint16_t i = 0; i < n; i++) {
		const struct packet headers = packet_ip_headers(packets[i]);
		struct offloaded *offloaded =
			scan_packet(&scan->offload, packets[i], &headers,
				    &nf->counters[FLOW_SCAN_SCANS], &scan->streams);

		if (unlikely(!offloaded || !packet_has_flow(&headers)))
			continue;
		if (unlikely(scan->drops_missed && offloaded->action == OFFLOAD_SEND &&
			     scan_missed(offloaded))) {
			offloaded->action = OFFLOAD_DROP; /* without a job there is no completion */
			nf->counters[scan->drops_missed]++;
		}
		held[burst.n] = offloaded;
		flow_burst_add(&burst, packets[i], packet_flow(packets[i], &headers));
		flow_table_begin(&scan->table.index, &burst, burst.n - 1);
	}
	if (likely(burst.n > 0))
		flow_table_count(&scan->table, nf, &burst, places, NULL);
	for (uint16_t i = 0; i < burst.n; i++)
		held[i]->place = places[i];
	offload_end(&scan->offload, out);
}

void flow_scan_destroy(struct nf *nf)
{
	struct flow_scan *scan = nf->state;

	stream_scan_destroy(&scan->streams);
	scan_destroy(nf, &scan->offload, FLOW_SCAN_QUEUES);
	flow_table_destroy(&scan->table);
}
