/*
 * Packets for a function or chain: as fast as it takes them, or at a rate. The latency of a packet
 * is then known: it begins when the packet should have entered, whenever there was time for it.
 */
#pragma once

#include <math.h>

#include <rte_cycles.h>

#include "core/clock.h"
#include "core/latency.h"
#include "core/nf.h"
#include "core/traffic.h"

#define LATENCY_SHIFT 8 /* latencies, and metadata->begun, are TSC / 256 */

struct source {
	struct traffic *traffic;
	double cycles_per_packet; /* of the offered rate; 0: as fast as it goes */
	double most_late;         /* cycles; packets that were due before are lost */
	double due;               /* TSC at which the next packet should enter; 0: not begun */
	double now;               /* TSC, read anew when less than a burst is due */
	uint64_t fill;            /* packets that enter as fast as it goes before all others */
	uint32_t mask;            /* of numbers of packets; 0: all are timed */
	bool timed; /* whether a timed packet is among the latest, which may be on their way */
};

/* Packets wait up to `most_late_s`, and `most_waiting` of them at any rate. */
static inline struct source source_at(struct traffic *traffic, double rate_kpps,
				      double most_waiting, double most_late_s)
{
	struct source source = {.traffic = traffic};

	if (rate_kpps > 0) {
		source.cycles_per_packet = clock_tsc_hz() / (1e3 * rate_kpps);
		source.most_late =
			fmax(most_waiting * source.cycles_per_packet, most_late_s * clock_tsc_hz());
	}
	return source;
}

/* Of each mask + 1 packets, the first are timed, which may all be of one burst. */
static inline bool source_times(const struct source *source, const struct rte_mbuf *packet)
{
	return (metadata_of_const(packet)->number & source->mask) < NF_BURST;
}

static inline uint16_t source_receive_paced(struct source *source, struct rte_mbuf **packets)
{
	const double each = source->fill > 0 ? 0 : source->cycles_per_packet;
	uint16_t n = NF_BURST;
	uint32_t first;

	if (each == 0 || source->now - source->due < NF_BURST * each) {
		source->now = (double)rte_rdtsc();
		if (each == 0 || source->due == 0)
			source->due = source->now;
		source->due = RTE_MAX(source->due, source->now - source->most_late);
		if (source->now < source->due)
			n = 0;
		else if (source->now - source->due < NF_BURST * each)
			n = (uint16_t)(1 + (source->now - source->due) / each);
	}
	n = n ? traffic_receive(source->traffic, packets, n) : 0;
	if (n == 0)
		return 0;
	first = metadata_of(packets[0])->number & source->mask;
	source->timed = first < NF_BURST + TRAFFIC_PACKETS || first + n > source->mask;
	for (uint16_t i = 0; source->timed && i < n; i++)
		metadata_of(packets[i])->begun =
			(uint32_t)((uint64_t)(source->due + i * each) >> LATENCY_SHIFT);
	source->due += n * each;
	source->fill -= RTE_MIN(source->fill, (uint64_t)n);
	return n;
}

/* At most NF_BURST packets. */
static inline uint16_t source_receive(struct source *source, struct rte_mbuf **packets)
{
	return source->cycles_per_packet > 0 ? source_receive_paced(source, packets)
					     : traffic_receive(source->traffic, packets, NF_BURST);
}

/* Latencies of the packets that left on one core. */
struct core_latencies {
	unsigned int epoch;
	struct latencies latencies;
};

/* Forget them if the epoch has changed, before a step of the core. */
static inline void core_latencies_begin(struct core_latencies *core, const unsigned int *epoch)
{
	const unsigned int now = __atomic_load_n(epoch, __ATOMIC_RELAXED);

	if (likely(core->epoch == now))
		return;
	*core = (struct core_latencies){.epoch = now};
}

/* Add the latencies of the timed ones among packets that leave. */
static inline void core_latencies_add(struct core_latencies *core, const struct source *source,
				      struct rte_mbuf **packets, uint32_t n)
{
	const uint32_t now = (uint32_t)(rte_rdtsc() >> LATENCY_SHIFT);

	for (uint32_t i = 0; i < n; i++)
		if (source_times(source, packets[i]))
			latencies_add(&core->latencies, now - metadata_of(packets[i])->begun);
}
