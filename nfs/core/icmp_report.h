/*
 * ICMP errors to whoever sent a packet that cannot go on (RFC 792, RFC 1812 section 4.3).
 *
 * A reporter says nothing where a router must not (about ICMP errors, non-initial fragments,
 * packets to or from what is not a single host), and no more than its rate allows.
 */
#ifndef NFS_CORE_ICMP_REPORT_H
#define NFS_CORE_ICMP_REPORT_H

#include "core/nf.h"
#include "core/packet.h"

/* RFC 1812, section 4.3.2.3: a datagram with an error is no longer than this. */
#define ICMP_REPORT_MOST 576

struct icmp_reporter {
	rte_be32_t address; /* whose errors these are */
	struct rte_mempool *pool;
	double per_us, most; /* a bucket of tokens: how fast it fills, what it holds */
	double tokens;
	uint64_t last_us;
	uint16_t next_id;
};

enum icmp_problem {
	ICMP_NET_UNREACHABLE,
	ICMP_FRAGMENTATION_NEEDED,
	ICMP_TTL_EXCEEDED,
};

enum icmp_report {
	ICMP_SENT,
	ICMP_SUPPRESSED, /* nobody may be told */
	ICMP_LIMITED,    /* too many errors of late, or no packet left to say it with */
};

struct icmp_reporter icmp_reporter_for(rte_be32_t address, struct rte_mempool *pool, double per_s,
				       double burst);

/*
 * Tell the sender of a packet that has an IPv4 header what is wrong, where ICMP_SENT is answered
 * with a new packet in `*error` for the port that it came from. `mtu` is of the next hop, and 0
 * unless fragmentation is needed (RFC 1191). The packet itself stays the caller's, and must be as
 * it was received.
 */
enum icmp_report icmp_report(struct icmp_reporter *reporter, struct rte_mbuf *about,
			     const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			     uint64_t now_us, struct rte_mbuf **error);

/*
 * Tell the sender, if that may be, and count it: `counters` are three, in the order of enum
 * icmp_report. The packet stays the caller's.
 */
void icmp_report_problem(struct icmp_reporter *reporter, struct rte_mbuf *about,
			 const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			 uint64_t now_us, uint64_t *counters, struct nf_out *out);

#endif
