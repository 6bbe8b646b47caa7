/*
 * Scan of payloads and its counters, shared by the functions that scan.
 *
 * Payloads of UDP, TCP and ICMP are scanned packet by packet: matches across fragments are not
 * found, and those across segments only in streams that are followed (stream_scan.h). Non-initial
 * fragments are not scanned: their protocol header is missing.
 */
#pragma once

#include "accelerators/stream_scan.h"

/* Parameter of every function that scans. */
#define SCAN_FILE                                                                                  \
	"file",                                                                                    \
		"file with rules, in place of the built-in ones, which the function's core scans " \
		"for; none if empty",                                                              \
		.text = ""

/*
 * As offload_create(); behind its parameters is that of SCAN_FILE. With a file, the function scans
 * for its rules, by an accelerator of its own.
 */
int scan_create(struct offload *offload, struct nf *nf, unsigned int first,
		const offload_completion completed[ACCELERATOR_KINDS]);
void scan_destroy(struct nf *nf, struct offload *offload, unsigned int first);

/* Counters of a scan, from `first` on. */
enum {
	SCAN_OTHER,
	SCAN_UNKNOWN,
	SCAN_MALFORMED,
	SCAN_SCANNED,
	SCAN_PARTIAL,
	SCAN_FRAGMENTS,
	SCAN_MATCHES,
	SCAN_FAILED,
	SCAN_COUNTERS
};
#define SCAN_COUNTERS_FROM(first)                                                                  \
	NF_OTHER_COUNTERS((first) + SCAN_OTHER),                                                   \
		[(first) + SCAN_SCANNED] = {"scanned", "packets whose payload was scanned"},       \
		[(first) + SCAN_PARTIAL] = {"partial",                                             \
					    "packets scanned only in their first segment"},        \
		[(first) + SCAN_FRAGMENTS] = {"fragments", "non-initial fragments, not scanned"},  \
		[(first) + SCAN_MATCHES] = {"matches", "rules that matched, summed over packets"}, \
		[(first) + SCAN_FAILED] = {"failed", "scans that failed"}

/*
 * Hold a packet and request a scan of its payload, if it has one, with what is around it in its
 * stream, unless `streams` is NULL or follows none. `headers` are those that the function
 * understands. NULL if the packet has been freed: malformed, or not understood.
 */
struct offloaded *scan_packet(struct offload *offload, struct rte_mbuf *packet,
			      const struct packet *headers, uint64_t *counters,
			      struct stream_scan *streams);

/* Whether a held packet has bytes that are not scanned, which a rule might match. */
static inline bool scan_missed(const struct offloaded *offloaded)
{
	return offloaded->headers.non_initial_fragment ||
	       offloaded->job.length < offloaded->headers.payload_length;
}

/* Count a completed scan; returns whether any rule matched. */
bool scan_matched(const struct offloaded *offloaded, uint64_t *counters);
