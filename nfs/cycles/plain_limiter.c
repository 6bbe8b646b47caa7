#include <rte_cycles.h>
#include <rte_meter.h>

#include "core/memory.h"
#include "cycles/peer.h"

#define BYTES_PER_S (100000 * UINT64_C(1000000) / 8)
#define BURST_US 10 /* between bursts, as for the function */

struct limiter {
	struct rte_meter_srtcm_profile profile;
	struct rte_meter_srtcm meter;
	uint64_t now;
};

static void *create(void)
{
	struct rte_meter_srtcm_params rate = {.cir = BYTES_PER_S, .cbs = BYTES_PER_S / 200};
	struct limiter *state = nf_zalloc(sizeof(*state));

	if (!state || rte_meter_srtcm_profile_config(&state->profile, &rate) != 0 ||
	    rte_meter_srtcm_config(&state->meter, &state->profile) != 0)
		return NULL;
	state->now = rte_rdtsc();
	return state;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct limiter *state = of;

	state->now += rte_get_tsc_hz() / 1000000 * BURST_US;
	for (uint16_t i = 0; i < n; i++) {
		const uint32_t bytes = rte_pktmbuf_pkt_len(packets[i]) + RTE_ETHER_CRC_LEN;

		if (rte_meter_srtcm_color_blind_check(&state->meter, &state->profile, state->now,
						      bytes) == RTE_COLOR_GREEN)
			nf_send(out, packets[i]);
		else
			rte_pktmbuf_free(packets[i]);
	}
}

PLAIN_PEER_FREED("Limiter",
		 "rte_meter_srtcm_color_blind_check, whose committed bucket is the limit", nf_free)
