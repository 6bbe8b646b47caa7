/*
 * IPTunnel: IPv4 in IPv4 (RFC 2003), to and from one remote end.
 *
 * Packets from inside are encapsulated. Packets above the tunnel's MTU are fragmented before, so
 * that the remote end need not reassemble; with DF set they are rejected with an ICMP error that
 * has the MTU (RFC 1191). Packets from outside are reassembled and decapsulated. ECN marks are
 * copied in and out (RFC 6040). The tunnel is one hop, counted at encapsulation: a decapsulated
 * packet keeps its inner time to live (RFC 2003, section 3.1), which the next router decrements.
 *
 * ICMP errors about packets in the tunnel become errors to the senders of the packets inside, as
 * RFC 2003, section 4, says. The MTU of one that a packet is too big also holds for later packets,
 * for ten minutes (section 5; RFC 1191, section 6.3): a router that quotes 8 bytes, too few for the
 * inner header, is understood, too.
 *
 * Not implemented: ICMP errors to the remote end about reassembly timeouts; datagrams of more than
 * 64 fragments (core/reassembly.h).
 */
#include <errno.h>

#include "core/fragment.h"
#include "core/icmp_report.h"
#include "core/ipv4.h"
#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"
#include "core/reassembly.h"
#include "functions/ip_tunnel/errors.h"

/* Adds and removes the outer header (RFC 2003, section 3.1). */

/*
 * Insert an outer header before the one at `l3`; it is `alike` except for the fields from the inner
 * header and its `id`. False without headroom.
 */
static inline bool add_outer(struct rte_mbuf *mbuf, uint16_t l3, const struct rte_ipv4_hdr *alike,
			     uint16_t id)
{
	char *front = rte_pktmbuf_prepend(mbuf, sizeof(*alike));
	const struct rte_ipv4_hdr *inner;
	struct rte_ipv4_hdr *outer;

	if (!front)
		return false;
	memmove(front, front + sizeof(*outer), l3);
	outer = (struct rte_ipv4_hdr *)(front + l3);
	inner = outer + 1;
	*outer = *alike;
	outer->type_of_service = inner->type_of_service;
	outer->total_length =
		rte_cpu_to_be_16(rte_be_to_cpu_16(inner->total_length) + sizeof(*outer));
	outer->packet_id = rte_cpu_to_be_16(id);
	outer->fragment_offset = inner->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	outer->hdr_checksum = rte_ipv4_cksum(outer);
	return true;
}

/* Remove the header at `l3`; returns its type of service. */
static inline uint8_t remove_outer(struct rte_mbuf *mbuf, uint16_t l3)
{
	const struct rte_ipv4_hdr *outer =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, l3);
	const uint8_t header = rte_ipv4_hdr_len(outer), service = outer->type_of_service;
	char *front = rte_pktmbuf_mtod(mbuf, char *);

	memmove(front + header, front, l3);
	rte_pktmbuf_adj(mbuf, header);
	return service;
}

#define MTU_HELD_US (UINT64_C(600) * 1000000)

enum { MTU, LOCAL, REMOTE, TTL, PENDING, PENDING_S, ERRORS, UNKNOWN = ERRORS + 2 };
static const struct nf_parameter parameters[] = {
	[MTU] = {"mtu", "MTU between the ends of the tunnel, bytes", 88, 9000, 1500},
	[LOCAL] = {"local", "this end's address, as a number; 192.0.2.1", 0, 4294967295,
		   RTE_IPV4(192, 0, 2, 1)},
	[REMOTE] = {"remote", "the other end's address, as a number; 192.0.2.2", 0, 4294967295,
		    RTE_IPV4(192, 0, 2, 2)},
	[TTL] = {"ttl", "time to live of outer headers", 1, 255, 64},
	[PENDING] = {"pending", "most datagrams in reassembly", 1, 65536, 1024},
	[PENDING_S] = {"pending_s", "timeout of reassembly, s", 0.001, 120, 30},
	ICMP_REPORT_PARAMETERS(ERRORS),
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "drop"),
};

enum {
	ENCAPSULATED,
	FRAGMENTED,
	FRAGMENTS,
	TOO_BIG,
	EXPIRED,
	LOOPING,
	DECAPSULATED,
	FRAGMENTS_RECEIVED,
	DUPLICATES, /* REASSEMBLY_COUNTERS from here */
	OVERLAPPING,
	EVICTED,
	UNASSEMBLED,
	FOREIGN,
	TUNNEL_ERRORS,
	CONGESTED,
	BAD_CHECKSUM,
	NO_ROOM,
	OTHER, /* NF_OTHER_COUNTERS from here */
	MALFORMED = OTHER + 2,
	ERRORS_SENT, /* ICMP_REPORT_COUNTERS from here */
};
static const struct nf_counter counters[] = {
	[ENCAPSULATED] = {"encapsulated", "packets or fragments encapsulated"},
	[FRAGMENTED] = {"fragmented", "packets fragmented before encapsulation"},
	[FRAGMENTS] = {"fragments", "fragments of those packets"},
	[TOO_BIG] = {"too_big", "packets above the MTU with DF, freed"},
	[EXPIRED] = {"expired", "packets with an expired time to live, before or in the tunnel"},
	[LOOPING] = {"looping", "packets from an end of the tunnel, freed (RFC 2003, section 4)"},
	[DECAPSULATED] = {"decapsulated", "packets decapsulated"},
	[FRAGMENTS_RECEIVED] = {"fragments_received", "fragments received from the tunnel"},
	[DUPLICATES] = {"duplicates", "fragments whose bytes had arrived, freed"},
	[OVERLAPPING] = {"overlapping", "fragments of packets whose fragments overlap with other "
					"bytes or ends, freed"},
	[EVICTED] = {"evicted", "fragments freed because reassembly holds too many packets"},
	[UNASSEMBLED] = {"unassembled", "fragments of incomplete packets, or invalid, freed"},
	[FOREIGN] = {"foreign", "packets from outside that do not belong to the tunnel, freed"},
	[TUNNEL_ERRORS] = {"tunnel_errors", "ICMP errors about packets in the tunnel, freed: senders "
					    "get their own"},
	[CONGESTED] = {"congested", "packets marked as congested whose sender lacks ECN, freed"},
	[BAD_CHECKSUM] = {"bad_checksum", "packets with a wrong header checksum, freed"},
	[NO_ROOM] = {"no_room", "packets freed without a buffer or headroom"},
	NF_OTHER_COUNTERS(OTHER),
	ICMP_REPORT_COUNTERS(ERRORS_SENT),
};

struct ip_tunnel {
	rte_be32_t local, remote;
	uint16_t mtu;  /* of encapsulated packets, now */
	uint16_t most; /* the same without what ICMP errors say */
	uint64_t mtu_until_us; /* when it is that again */
	uint16_t next_id;
	struct rte_ipv4_hdr outer; /* the constant part of the outer header */
	struct icmp_reporter reporter;
	struct reassembly *reassembly;
};

static void destroy(struct nf *nf)
{
	struct ip_tunnel *tunnel = nf->state;

	reassembly_destroy(tunnel->reassembly);
}

static int create(struct nf *nf)
{
	const double *settings = nf->settings;
	struct ip_tunnel *tunnel = nf->state;
	struct reassembly_limits limits;

	tunnel->local = rte_cpu_to_be_32((uint32_t)settings[LOCAL]);
	tunnel->remote = rte_cpu_to_be_32((uint32_t)settings[REMOTE]);
	tunnel->mtu = tunnel->most = (uint16_t)settings[MTU] - sizeof(tunnel->outer);
	tunnel->mtu_until_us = UINT64_MAX;
	tunnel->outer = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.time_to_live = (uint8_t)settings[TTL],
		.next_proto_id = IPPROTO_IPIP,
		.src_addr = tunnel->local,
		.dst_addr = tunnel->remote,
	};
	tunnel->reporter = icmp_reporter_for(tunnel->local, nf->spare, &settings[ERRORS]);
	limits = reassembly_limits((uint32_t)settings[PENDING], settings[PENDING_S]);
	tunnel->reassembly = reassembly_create(nf->kind->name, &limits, &nf->counters[DUPLICATES]);
	return tunnel->reassembly ? 0 : -ENOMEM;
}

/* Free a packet that cannot be forwarded, and send an ICMP error about it. */
static void free_and_report(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			    enum icmp_problem problem, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;
	const bool too_big = problem == ICMP_FRAGMENTATION_NEEDED;

	icmp_report_problem(&tunnel->reporter, mbuf, packet, problem, too_big ? tunnel->mtu : 0,
			    nf->now_us, &nf->counters[ERRORS_SENT], out);
	nf_drop(nf, mbuf, too_big ? TOO_BIG : EXPIRED);
}

/* Encapsulate a packet that fits. */
static void encapsulate(struct nf *nf, struct rte_mbuf *mbuf, uint16_t l3, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;

	if (!add_outer(mbuf, l3, &tunnel->outer, tunnel->next_id++)) {
		nf_drop(nf, mbuf, NO_ROOM);
		return;
	}
	nf->counters[ENCAPSULATED]++;
	nf_send(out, mbuf);
}

static void cut_and_encapsulate(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
				struct nf_out *out)
{
	const struct ip_tunnel *tunnel = nf->state;
	struct rte_mbuf *fragments[FRAGMENTS_MOST];
	int n = -ENOMEM;

	if (nf->spare)
		n = ipv4_fragment(mbuf, packet, tunnel->mtu, nf->spare, fragments);
	if (n < 0) {
		nf_drop(nf, mbuf, n == -EMSGSIZE ? MALFORMED : NO_ROOM);
		return;
	}
	nf->counters[FRAGMENTED]++;
	nf->counters[FRAGMENTS] += n;
	for (int i = 0; i < n; i++)
		encapsulate(nf, fragments[i], packet->l3, out);
}

static void from_inside(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			struct nf_out *out)
{
	const struct ip_tunnel *tunnel = nf->state;
	struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const bool fits = rte_be_to_cpu_16(ip->total_length) <= tunnel->mtu;

	if (ip->src_addr == tunnel->local || ip->src_addr == tunnel->remote) {
		nf_drop(nf, mbuf, LOOPING);
		return;
	}
	if (ip->time_to_live <= 1) {
		free_and_report(nf, mbuf, packet, ICMP_TTL_EXCEEDED, out);
		return;
	}
	if (!fits && (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG))) {
		free_and_report(nf, mbuf, packet, ICMP_FRAGMENTATION_NEEDED, out);
		return;
	}
	ipv4_hop(ip);
	if (fits) {
		packet_unpad(mbuf, packet->l3);
		encapsulate(nf, mbuf, packet->l3, out);
	} else {
		cut_and_encapsulate(nf, mbuf, packet, out);
	}
}

/* The counter of a packet from the tunnel: DECAPSULATED, or why it is freed. */
static int check_outer(struct rte_mbuf *mbuf, const struct packet *packet, uint8_t marks)
{
	struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);

	if (!packet_has_ipv4(packet))
		return MALFORMED;
	if (!ipv4_checksum_is_right(ip))
		return BAD_CHECKSUM;
	if (ip->time_to_live == 0)
		return EXPIRED;
	return ipv4_join_mark(ip, marks) ? DECAPSULATED : CONGESTED;
}

/* Decapsulate a packet whose outer header is valid. */
static void decapsulate(struct nf *nf, struct rte_mbuf *mbuf, uint16_t l3, struct nf_out *out)
{
	struct packet packet;
	uint8_t marks;
	int verdict;

	packet_unpad(mbuf, l3); /* otherwise padding could complete a truncated inner packet */
	marks = remove_outer(mbuf, l3);
	packet = packet_parse(mbuf);
	verdict = check_outer(mbuf, &packet, marks);
	if (verdict != DECAPSULATED) {
		nf_drop(nf, mbuf, verdict);
		return;
	}
	packet_unpad(mbuf, l3);
	nf->counters[DECAPSULATED]++;
	nf_send(out, mbuf);
}

/* Store a fragment from the tunnel, or decapsulate the packet that it completes. */
static void receive_fragment(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			     struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;
	struct reassembled whole;

	nf->counters[FRAGMENTS_RECEIVED]++;
	if (!reassembly_add(tunnel->reassembly, mbuf, packet, NF_OUTSIDE, nf->now_us, &whole))
		return;
	if (!reassembled_join_marks(&whole)) {
		nf_drop(nf, whole.mbuf, CONGESTED);
		return;
	}
	decapsulate(nf, whole.mbuf, whole.l3, out);
}

/* Send an error of the tunnel on to the sender of the packet in it. */
static void relay(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		  const struct tunnel_error *said, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;
	enum icmp_report report = ICMP_SUPPRESSED;
	struct rte_mbuf *error = NULL;
	uint16_t mtu = 0;

	if (said->is_relayed && said->problem == ICMP_FRAGMENTATION_NEEDED) {
		/* never more (RFC 1191, section 3) */
		mtu = tunnel->mtu = RTE_MIN(said->mtu, tunnel->mtu);
		tunnel->mtu_until_us = nf->now_us + MTU_HELD_US;
	}
	if (said->is_relayed && said->has_inner)
		report = icmp_report_quoted(&tunnel->reporter, mbuf, packet, &said->inner,
					    said->problem, mtu, nf->now_us, &error);
	nf->counters[ERRORS_SENT + report]++;
	if (error)
		nf_send(out, error);
	nf_drop(nf, mbuf, TUNNEL_ERRORS);
}

static void from_outside(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			 struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	struct tunnel_error error;

	if (unlikely(ip->next_proto_id == IPPROTO_ICMP) &&
	    tunnel_error_read(mbuf, packet, tunnel->local, tunnel->remote, &error)) {
		relay(nf, mbuf, packet, &error, out);
		return;
	}
	if (ip->next_proto_id != IPPROTO_IPIP || ip->dst_addr != tunnel->local ||
	    ip->src_addr != tunnel->remote) {
		nf_drop(nf, mbuf, FOREIGN);
		return;
	}
	if (packet->fragment)
		receive_fragment(nf, mbuf, packet, out);
	else
		decapsulate(nf, mbuf, packet->l3, out);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;

	if (unlikely(nf->now_us >= tunnel->mtu_until_us)) {
		tunnel->mtu = tunnel->most;
		tunnel->mtu_until_us = UINT64_MAX;
	}
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = packets[i];
		const struct packet packet = packet_headers(mbuf);

		if (unlikely(!packet_has_ipv4(&packet)))
			nf_other(nf, mbuf, packet.type, OTHER, out);
		else if (unlikely(!ipv4_checksum_is_right(packet_ipv4(mbuf, &packet))))
			nf_drop(nf, mbuf, BAD_CHECKSUM);
		else if (packet_from(mbuf) == NF_INSIDE)
			from_inside(nf, mbuf, &packet, out);
		else
			from_outside(nf, mbuf, &packet, out);
	}
	reassembly_expire(tunnel->reassembly, nf->now_us);
}

static void poll(struct nf *nf, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;

	(void)out;
	reassembly_expire(tunnel->reassembly, nf->now_us);
}

static void flush(struct nf *nf, struct nf_out *out)
{
	struct ip_tunnel *tunnel = nf->state;

	(void)out; /* held fragments must not be sent */
	reassembly_free_all(tunnel->reassembly);
}

NF_KIND("IPTunnel", "tunnels IPv4 in IPv4, fragmented to the tunnel's MTU",
	.state_bytes = sizeof(struct ip_tunnel), .create = create, .process = process, .poll = poll,
	.flush = flush, .destroy = destroy)
