/*
 * Limiter: limits packets to a rate by a token bucket; those above it are freed.
 *
 * A packet passes while the bucket is not empty, and takes as many tokens as it has bytes, also if
 * they are more than are left: so a large packet has the same chance as small ones, and one larger
 * than the bucket passes, too. Over any second at most the rate, the bucket and one packet pass; at
 * least the rate, if packets arrive faster and are never missing for as long as the bucket takes to
 * fill. The default bucket fills in 5 ms, so that both are within 1 % of the rate, if that is 200
 * packets per second or more.
 *
 * Bytes are those of the frame with the 4 of its checksum, as in rates of Ethernet, but without
 * preamble and gap; with checksums=0 those of a capture. Either side has buckets of its own. All packets count, whatever they are. The
 * clock is that of bursts: within one, no time passes. Two instances allow twice the rate.
 */
#include <errno.h>
#include <math.h>

#include "core/memory.h"
#include "core/nf.h"

enum { RATE_MBPS, BURST_BYTES, RATE_KPPS, BURST_PACKETS, CHECKSUMS };
static const struct nf_parameter parameters[] = {
	[RATE_MBPS] = {"rate_mbps", "rate in 10^6 bits per second; 0: not limited in bytes", 0, 1e6,
		       100000},
	[BURST_BYTES] = {"burst_bytes", "size of the bucket; 0: 5 ms of the rate", 0, 1e9, 0},
	[RATE_KPPS] = {"rate_kpps", "rate in 1,000 packets per second; 0: not limited in packets",
		       0, 1e6, 0},
	[BURST_PACKETS] = {"burst_packets", "size of its bucket; 0: 5 ms of the rate", 0, 1e6, 0},
	[CHECKSUMS] = {"checksums", "whether bytes are those with the checksums of frames", 0, 1, 1},
};

enum { PASSED, PASSED_BYTES, DROPPED, DROPPED_BYTES };
static const struct nf_counter counters[] = {
	[PASSED] = {"passed", "packets sent on"},
	[PASSED_BYTES] = {"passed_bytes", "bytes of their frames, with checksums"},
	[DROPPED] = {"dropped", "packets above the rate, freed"},
	[DROPPED_BYTES] = {"dropped_bytes", "bytes of their frames, with checksums"},
};

#define DEFAULT_BURST_US 5000

struct bucket {
	double tokens; /* infinite without a limit, below 0 after a packet larger than the rest */
	double most;
	double per_us;
};

/* What passes from one side. */
struct limit {
	struct bucket bytes, packets;
	uint64_t filled_us; /* when the buckets were filled last */
};

struct limiter {
	uint32_t checksum_bytes; /* of each frame, which count */
	struct limit from[2]; /* indexed by enum nf_side */
};

/* A full bucket. */
static struct bucket bucket_of(double per_us, double most)
{
	if (per_us == 0)
		most = INFINITY;
	else if (most == 0)
		most = per_us * DEFAULT_BURST_US;
	return (struct bucket){.tokens = most, .most = most, .per_us = per_us};
}

static int create(struct nf *nf)
{
	struct limiter *limiter = nf->state;
	const double *settings = nf->settings;

	limiter->checksum_bytes = settings[CHECKSUMS] != 0 ? RTE_ETHER_CRC_LEN : 0;
	for (int side = NF_INSIDE; side <= NF_OUTSIDE; side++)
		limiter->from[side] = (struct limit){
			.bytes = bucket_of(settings[RATE_MBPS] / 8, settings[BURST_BYTES]),
			.packets = bucket_of(settings[RATE_KPPS] / 1000, settings[BURST_PACKETS]),
		};
	return 0;
}

static inline void fill(struct bucket *bucket, double us)
{
	bucket->tokens = fmin(bucket->tokens + us * bucket->per_us, bucket->most);
}

static inline void fill_both(struct limit *limit, uint64_t now_us)
{
	/* a clock that is set back must not fill them */
	if (unlikely(now_us <= limit->filled_us))
		return;
	fill(&limit->bytes, (double)(now_us - limit->filled_us));
	fill(&limit->packets, (double)(now_us - limit->filled_us));
	limit->filled_us = now_us;
}

/* Whether a packet may pass; takes its tokens. */
static inline bool admit(struct limit *limit, uint32_t bytes)
{
	if (limit->bytes.tokens <= 0 || limit->packets.tokens <= 0)
		return false;
	limit->bytes.tokens -= bytes;
	limit->packets.tokens -= 1;
	return true;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct limiter *limiter = nf->state;
	struct rte_mbuf *dropped[NF_BURST];
	uint64_t passed_bytes = 0, dropped_bytes = 0;
	uint16_t n_dropped = 0;

	fill_both(&limiter->from[NF_INSIDE], nf->now_us);
	fill_both(&limiter->from[NF_OUTSIDE], nf->now_us);
	for (uint16_t i = 0; i < n; i++) {
		const uint32_t bytes = rte_pktmbuf_pkt_len(packets[i]) + limiter->checksum_bytes;

		if (admit(&limiter->from[packet_from(packets[i])], bytes)) {
			passed_bytes += bytes;
			nf_send(out, packets[i]);
		} else {
			dropped_bytes += bytes;
			dropped[n_dropped++] = packets[i];
		}
	}
	rte_pktmbuf_free_bulk(dropped, n_dropped);
	nf->counters[PASSED] += n - n_dropped;
	nf->counters[PASSED_BYTES] += passed_bytes;
	nf->counters[DROPPED] += n_dropped;
	nf->counters[DROPPED_BYTES] += dropped_bytes;
}

NF_KIND("Limiter", "limits packets to a rate by a token bucket",
	.state_bytes = sizeof(struct limiter), .create = create, .process = process)
