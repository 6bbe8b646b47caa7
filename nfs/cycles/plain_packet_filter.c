
#include "core/memory.h"
#include "cycles/peer.h"
#include "cycles/plain_scan.h"

static void *create(void)
{
	struct plain_scan *scan = nf_zalloc(sizeof(*scan));

	return scan && plain_scan_create(scan) ? scan : NULL;
}

static void process(void *scan, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		if (plain_scan_packet(scan, packets[i]) > 0)
			rte_pktmbuf_free(packets[i]);
		else
			nf_send(out, packets[i]);
	}
}

static void destroy(void *scan)
{
	plain_scan_destroy(scan);
	nf_free(scan);
}

PLAIN_PEER("PacketFilter", "hs_scan of each payload")
