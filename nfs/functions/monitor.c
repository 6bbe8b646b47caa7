/*
 * Monitor: counts packets and bytes by protocol, and finds the flows with the most bytes. All
 * packets pass, except malformed ones.
 *
 * FlowStats has an entry for every flow, until it ages, and knows each count exactly; its memory
 * and working set grow with the flows. Monitor has a fixed number of counters however many flows
 * there are (functions/monitor/top_talkers.h): it finds every flow with more than that share of all
 * bytes, and states between which bounds its bytes are. Nothing ages: it reports on all packets
 * since it was created.
 *
 * The report is a CSV file, written when the instance is destroyed: a line per flow, the one with
 * the most bytes first. Fragments other than the first have no ports, and belong to a flow of their
 * own. Bytes are those of frames without checksum.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <rte_prefetch.h>

#include "core/memory.h"
#include "core/nf.h"
#include "functions/monitor/top_talkers.h"

#define MOST_TALKERS 65536

enum { TALKERS, REPORT, REPORTED, IPV6, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[TALKERS] = {"talkers", "flows with a counter", 1, MOST_TALKERS, 1024},
	[REPORT] = {"report", "file to which the top talkers are written; none if empty",
		    .text = ""},
	[REPORTED] = {"reported", "flows in the report, at most", 1, MOST_TALKERS, 20},
	[IPV6] = {NF_IPV6},
	NF_OTHER_PARAMETERS(UNKNOWN, "pass", "pass"),
};

enum { TCP, UDP, ICMP, REST, PROTOCOLS };
enum {
	PACKETS_OF,
	BYTES_OF = PACKETS_OF + PROTOCOLS,
	REPLACED = BYTES_OF + PROTOCOLS,
	OTHER,
	MALFORMED = OTHER + 2,
	OTHER_BYTES,
};
static const struct nf_counter counters[] = {
	[PACKETS_OF + TCP] = {"tcp_packets", "packets of TCP"},
	[PACKETS_OF + UDP] = {"udp_packets", "packets of UDP"},
	[PACKETS_OF + ICMP] = {"icmp_packets", "packets of ICMP, and ICMPv6"},
	[PACKETS_OF + REST] = {"rest_packets", "packets of other protocols in IP"},
	[BYTES_OF + TCP] = {"tcp_bytes", "bytes of frames with TCP"},
	[BYTES_OF + UDP] = {"udp_bytes", "bytes of frames with UDP"},
	[BYTES_OF + ICMP] = {"icmp_bytes", "bytes of frames with ICMP"},
	[BYTES_OF + REST] = {"rest_bytes", "bytes of frames with other protocols"},
	[REPLACED] = {"replaced", "flows that lost their counter to another one"},
	NF_OTHER_COUNTERS(OTHER),
	[OTHER_BYTES] = {"other_bytes", "bytes of frames among other"},
};

struct monitor {
	struct top_talkers top;
	FILE *report; /* written aside; NULL: none */
	char aside[PATH_MAX];
};

static int open_report(struct monitor *monitor, const char *path)
{
	const size_t room = sizeof(monitor->aside);
	int error = ENAMETOOLONG;

	if (!*path)
		return 0;
	if ((size_t)snprintf(monitor->aside, room, "%s.part", path) < room) {
		monitor->report = fopen(monitor->aside, "w");
		error = errno;
	}
	if (monitor->report)
		return 0;
	fprintf(stderr, "Monitor: cannot write %s: %s\n", path, strerror(error));
	return -error;
}

static int create(struct nf *nf)
{
	struct monitor *monitor = nf->state;

	if (top_talkers_create(&monitor->top, nf->kind->name, (uint32_t)nf->settings[TALKERS]) < 0)
		return -ENOMEM;
	return open_report(monitor, nf->texts[REPORT]);
}

static void write_address(FILE *report, int family, const void *address)
{
	char text[INET6_ADDRSTRLEN];

	fprintf(report, "%s,", inet_ntop(family, address, text, sizeof(text)));
}

static void write_talkers(FILE *report, const struct talker *const *talkers, uint32_t n)
{
	fprintf(report, "source,destination,protocol,source_port,destination_port,"
			"bytes_at_least,bytes_at_most,packets_at_least\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct talker *talker = talkers[i];

		const bool ipv6 = talker->flow.family == FLOW_IPV6;
		const int family = ipv6 ? AF_INET6 : AF_INET;

		write_address(report, family, ipv6 ? talker->ends : (const void *)&talker->flow.source);
		write_address(report, family,
			      ipv6 ? talker->ends + 16 : (const void *)&talker->flow.destination);
		fprintf(report, "%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
			talker->flow.protocol, rte_be_to_cpu_16(talker->flow.source_port),
			rte_be_to_cpu_16(talker->flow.destination_port),
			talker->bytes - talker->error, talker->bytes, talker->packets);
	}
}

/* Write the report, and rename it once it is complete. */
static void close_report(struct nf *nf)
{
	struct monitor *monitor = nf->state;
	const struct talker **talkers = top_talkers_sorted(&monitor->top);
	bool written = talkers != NULL;

	if (talkers)
		write_talkers(monitor->report, talkers,
			      RTE_MIN((uint32_t)nf->settings[REPORTED], monitor->top.n));
	free(talkers);
	written &= !ferror(monitor->report);
	written &= fclose(monitor->report) == 0;
	if (!written || rename(monitor->aside, nf->texts[REPORT]) != 0)
		fprintf(stderr, "Monitor: cannot write %s: %s\n", nf->texts[REPORT],
			strerror(errno));
}

static void destroy(struct nf *nf)
{
	struct monitor *monitor = nf->state;

	if (monitor->report)
		close_report(nf);
	top_talkers_destroy(&monitor->top);
}

static inline int protocol_of(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return TCP;
	case IPPROTO_UDP:
		return UDP;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return ICMP;
	default:
		return REST;
	}
}

/* A packet whose flow is to be counted. */
struct counted {
	struct flow_key flow;
	uint32_t hash, bytes;
};

/* Count a packet, whose flow is read, by its protocol, and store the hash of its flow. */
static inline void count_protocol(struct nf *nf, const struct rte_mbuf *mbuf,
				  struct counted *counted)
{
	const struct monitor *monitor = nf->state;
	const uint32_t bytes = rte_pktmbuf_pkt_len(mbuf);
	const int protocol = protocol_of(counted->flow.protocol);

	counted->hash = flow_hash(packet_flow_secrets, &counted->flow);
	counted->bytes = bytes;
	rte_prefetch0(&monitor->top.buckets[counted->hash & monitor->top.mask]);
	nf->counters[PACKETS_OF + protocol]++;
	nf->counters[BYTES_OF + protocol] += bytes;
}

/* A packet without a flow that is read. */
static void take_other(struct nf *nf, struct rte_mbuf *mbuf, enum packet_type type,
		       struct nf_out *out)
{
	const bool passes = type == PACKET_IPV6  ? nf->passes_ipv6
			    : type == PACKET_ARP ? nf->passes_arp
						 : nf->passes_unknown;

	if (!passes) {
		nf_drop(nf, mbuf, OTHER + 1);
		return;
	}
	nf->counters[OTHER]++;
	nf->counters[OTHER_BYTES] += rte_pktmbuf_pkt_len(mbuf);
	nf_send(out, mbuf);
}

/* Where addresses are in a frame without tags. */
#define ENDS_AT (sizeof(struct rte_ether_hdr) + offsetof(struct rte_ipv6_hdr, src_addr))

/* The flow of a packet that is not plain, and addresses of IPv6; false if it is finished. */
static __rte_noinline bool read_any(struct nf *nf, struct rte_mbuf *mbuf, struct flow_key *flow,
				    uint8_t ends[32], struct nf_out *out)
{
	struct packet packet = packet_headers(mbuf);

	if (packet.type == PACKET_IPV4) {
		*flow = packet_flow_ipv4(mbuf, &packet);
		return true;
	}
	if (!nf->leaves_ipv6_unread)
		packet = packet_behind_extensions(mbuf, packet);
	if (packet.type == PACKET_MALFORMED) {
		nf_drop(nf, mbuf, MALFORMED);
		return false;
	}
	if (packet.type != PACKET_IPV6 || nf->leaves_ipv6_unread) {
		take_other(nf, mbuf, packet.type, out);
		return false;
	}
	*flow = packet_flow_ipv6(mbuf, &packet);
	memcpy(ends, packet_ipv6(mbuf, &packet)->src_addr, 32);
	return true;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct monitor *monitor = nf->state;
	struct counted counted[NF_BURST];
	uint8_t ends[NF_BURST][32]; /* of IPv6 */
	uint16_t n_counted = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = packets[i];
		struct counted *next = &counted[n_counted];

		if (likely(packet_is_plain(mbuf))) {
			next->flow = packet_plain_flow(mbuf);
		} else if (packet_is_plain_ipv6(mbuf) && !nf->leaves_ipv6_unread) {
			packet_plain_flow_ipv6(mbuf, &next->flow);
			memcpy(ends[n_counted], rte_pktmbuf_mtod_offset(mbuf, uint8_t *, ENDS_AT), 32);
		} else if (!read_any(nf, mbuf, &next->flow, ends[n_counted], out)) {
			continue;
		}
		count_protocol(nf, mbuf, next);
		n_counted++;
		nf_send(out, mbuf);
	}
	for (uint16_t i = 0; i < n_counted; i++)
		top_talkers_count(&monitor->top, &counted[i].flow, ends[i], counted[i].hash,
				  counted[i].bytes);
	nf->counters[REPLACED] = monitor->top.replaced;
}

NF_KIND("Monitor", "counts by protocol, and finds the flows with the most bytes",
	.state_bytes = sizeof(struct monitor), .create = create, .process = process,
	.destroy = destroy)
