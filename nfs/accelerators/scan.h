/*
 * What the functions that scan payloads share: which payloads, and how that is counted.
 *
 * Payloads of UDP, TCP and ICMP in IPv4 are scanned, packet by packet: what a rule would match only
 * across packets, or parts of a datagram, is not found. Of a non-initial fragment nobody knows what
 * it carries.
 */
#ifndef NFS_ACCELERATORS_SCAN_H
#define NFS_ACCELERATORS_SCAN_H

#include "accelerators/offload.h"

/* Their counters stand together, from `first` on. */
enum {
	SCAN_OTHER,
	SCAN_MALFORMED,
	SCAN_SCANNED,
	SCAN_PARTIAL,
	SCAN_FRAGMENTS,
	SCAN_MATCHES,
	SCAN_FAILED,
	SCAN_COUNTERS
};
#define SCAN_COUNTERS_FROM(first)                                                                  \
	[(first) +                                                                                 \
		SCAN_OTHER] = {"other", "packets that are not IPv4, sent on as they are"},         \
		[(first) + SCAN_MALFORMED] = {"malformed", "packets freed"},                       \
		[(first) + SCAN_SCANNED] = {"scanned", "packets whose payload was scanned"},       \
		[(first) + SCAN_PARTIAL] = {"partial",                                             \
					    "packets not scanned behind their first segment"},     \
		[(first) + SCAN_FRAGMENTS] = {"fragments", "non-initial fragments, not scanned"},  \
		[(first) + SCAN_MATCHES] = {"matches", "rules that matched, summed over packets"}, \
		[(first) + SCAN_FAILED] = {"failed", "scans that the accelerator could not do"}

/*
 * Hold a packet and ask for its payload to be scanned, if it has one. NULL when it was malformed,
 * and has been freed.
 */
struct offloaded *scan_packet(struct offload *offload, struct rte_mbuf *packet, uint64_t *counters);

/* Whether a rule may match what was not, or will not be, scanned of a packet that is held. */
static inline bool scan_missed(const struct offloaded *offloaded)
{
	return offloaded->headers.non_initial_fragment ||
	       offloaded->job.length < offloaded->headers.payload_length;
}

/* Count an answer. Whether any rule matched. */
bool scan_matched(const struct offloaded *offloaded, uint64_t *counters);

#endif
