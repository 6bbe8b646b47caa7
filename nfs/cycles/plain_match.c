#include <pcap/pcap.h>

#include "core/memory.h"
#include "core/metadata.h"
#include "cycles/peer.h"

static const char *const expressions[] = {"tcp port 80 or tcp port 443", "udp port 53", "tcp",
					  "udp"};

struct match {
	struct bpf_program filters[RTE_DIM(expressions)];
};

static void *create(void)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	struct match *state = nf_zalloc(sizeof(*state));

	for (unsigned int i = 0; i < RTE_DIM(expressions); i++)
		if (pcap_compile(pcap, &state->filters[i], expressions[i], 1,
				 PCAP_NETMASK_UNKNOWN) != 0)
			return NULL;
	pcap_close(pcap);
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct match *state = of;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *bytes = rte_pktmbuf_mtod(packets[i], const uint8_t *);
		const uint32_t length = rte_pktmbuf_data_len(packets[i]);
		unsigned int first = 0;

		while (first < RTE_DIM(expressions) &&
		       !bpf_filter(state->filters[first].bf_insns, bytes, length, length))
			first++;
		packet_branch(packets[i], first);
		nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct match *state = of;

	for (unsigned int i = 0; i < RTE_DIM(expressions); i++)
		pcap_freecode(&state->filters[i]);
	nf_free(state);
}

PLAIN_PEER("Match", "bpf_filter of each expression until one matches")
