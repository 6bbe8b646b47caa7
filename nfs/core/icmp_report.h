/*
 * Sends ICMP errors about packets that cannot be forwarded (RFC 792, RFC 1812 section 4.3).
 *
 * No error is sent where a router must not (about ICMP errors, non-initial fragments, or packets
 * from or to an address that is not one host's), or beyond the configured rate.
 */
#pragma once

#include "core/nf.h"
#include "core/packet.h"

/* RFC 1812, section 4.3.2.3: longest datagram of an error. */
#define ICMP_REPORT_MOST 576

struct icmp_reporter {
	rte_be32_t address; /* source address of the errors */
	struct rte_mempool *pool;
	double per_us, most; /* token bucket: fill rate and size */
	double tokens;
	uint64_t last_us;
	uint16_t next_id;
};

enum icmp_problem {
	ICMP_NET_UNREACHABLE,
	ICMP_HOST_UNREACHABLE,
	ICMP_FRAGMENTATION_NEEDED,
	ICMP_TTL_EXCEEDED,
};

enum icmp_report {
	ICMP_SENT,
	ICMP_SUPPRESSED, /* no error is allowed for this packet */
	ICMP_LIMITED,    /* the rate limit is reached, or no buffer is free */
};

/* Parameters of functions that report errors, for icmp_reporter_for(); and counters. */
#define ICMP_REPORT_PARAMETERS(at)                                                                 \
	[at] = {"errors_per_s", "ICMP errors per second, at most", 0, 1e6, 1000},                  \
	[(at) + 1] = {"errors_at_once", "burst of ICMP errors, at most", 1, 1e6, 100}
#define ICMP_REPORT_COUNTERS(at)                                                                   \
	[(at) + ICMP_SENT] = {"errors_sent", "ICMP errors sent back"},                             \
	[(at) + ICMP_SUPPRESSED] = {"errors_suppressed", "suppressed ICMP errors"},                \
	[(at) + ICMP_LIMITED] = {"errors_limited",                                                 \
				 "ICMP errors above the rate, or without a buffer"}

struct icmp_reporter icmp_reporter_for(rte_be32_t address, struct rte_mempool *pool,
				       const double settings[2]);

/*
 * Create an ICMP error about a packet with an IPv4 header. For ICMP_SENT, `*error` is a new packet
 * that goes back to where the packet came from. `mtu` is that of the next hop, and 0 unless
 * fragmentation is needed (RFC 1191). The packet stays the caller's and must be unchanged since it
 * was received.
 */
enum icmp_report icmp_report(struct icmp_reporter *reporter, struct rte_mbuf *about,
			     const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			     uint64_t now_us, struct rte_mbuf **error);

/*
 * The same about a packet that an ICMP error quotes, to its sender: `quoted` has its headers in
 * `error`, as far as they are quoted, and ends with `payload`. The new packet goes on where `error`
 * would.
 */
enum icmp_report icmp_report_quoted(struct icmp_reporter *reporter, struct rte_mbuf *error,
				    const struct packet *headers, const struct packet *quoted,
				    enum icmp_problem problem, uint16_t mtu, uint64_t now_us,
				    struct rte_mbuf **made);

/*
 * Send an ICMP error if allowed, and count it in `counters`, indexed by enum icmp_report. The
 * packet stays the caller's.
 */
void icmp_report_problem(struct icmp_reporter *reporter, struct rte_mbuf *about,
			 const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			 uint64_t now_us, uint64_t *counters, struct nf_out *out);
