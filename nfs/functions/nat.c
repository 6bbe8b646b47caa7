/*
 * NAT: inside hosts share a few external addresses (RFC 4787, RFC 5382 and RFC 5508).
 *
 * Mapping and filtering are endpoint-independent; a host keeps one external address. Packets
 * from one inside host to the external address of another one are hairpinned, and so are ICMP
 * errors about them. Fragments are received in any order and held until their datagram is complete
 * (REQ-14); it is translated whole, and sent in fragments no longer than the longest received.
 * External endpoints may be forwarded to inside ones for good. Of GRE, ESP and SCTP only addresses
 * are translated.
 * Not implemented: hairpinned ICMP queries (RFC 5508 requires them of Basic NAT only), other
 * protocols, identifications of datagrams that are unique to an external address (RFC 6864, section
 * 5.3.1), and a router's work (time to live, next hops).
 */
#include <errno.h>

#include "core/flow_burst.h"
#include "core/memory.h"
#include "core/nf.h"
#include "functions/nat/crossing.h"
#include "functions/nat/forwards.h"

/* The fast path of a NAT: outbound plain packets of known sessions. */

/*
 * Rewrite the source of a plain packet with a known protocol, UDP or TCP: its headers need not be
 * searched.
 */
static inline void plain_source_rewrite(struct rte_mbuf *mbuf, uint8_t protocol, struct endpoint to)
{
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	const uint32_t address = address_change(ip->src_addr, to.address);
	const uint32_t both = address + (uint16_t)~udp->src_port + to.port;

	ip->hdr_checksum = checksum_after(ip->hdr_checksum, address);
	if (protocol == IPPROTO_TCP) {
		tcp->cksum = checksum_after(tcp->cksum, both);
	} else if (udp->dgram_cksum != 0) {
		udp->dgram_cksum = checksum_after(udp->dgram_cksum, both);
		if (udp->dgram_cksum == 0)
			udp->dgram_cksum = 0xffff; /* 0 would mean no checksum (RFC 768) */
	}
	ip->src_addr = to.address;
	udp->src_port = to.port;
}

/* Translate a plain packet of a known session that is not hairpinned. */
static inline void translate_plain(struct rte_mbuf *mbuf, struct session *session, uint64_t now_us)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *,
								sizeof(struct rte_ether_hdr));
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);

	if (likely(ip->next_proto_id == IPPROTO_UDP)) {
		session->last_us = now_us;
		plain_source_rewrite(mbuf, IPPROTO_UDP, session_outside(session));
		return;
	}
	session_seen(session, true, tcp->tcp_flags, now_us);
	plain_source_rewrite(mbuf, IPPROTO_TCP, session_outside(session));
}

enum {
	SESSIONS,
	ADDRESSES,
	FIRST_ADDRESS,
	HOST_PORTS,
	SEED,
	UDP_S,
	ICMP_S,
	TRANSITORY_S,
	ESTABLISHED_S,
	PENDING,
	PENDING_S,
	FORWARDS,
	PAIRS,
	UNKNOWN,
};
static const struct nf_parameter parameters[] = {
	[SESSIONS] = {"sessions", "capacity of the table", 8, 1 << 22, 1 << 20},
	[ADDRESSES] = {"addresses", "number of external addresses", 1, 256, 16},
	[FIRST_ADDRESS] = {"first_address", "first external address, as a number (203.0.113.0)", 0,
			   4294967040, RTE_IPV4(203, 0, 113, 0)},
	[HOST_PORTS] = {"host_ports",
			"most ports of an inside host, of each protocol (RFC 6888, REQ-4)", 1,
			64512, 4096},
	[SEED] = {"seed", "seed of the order of ports; keep it secret to make ports unpredictable",
		  0, 4294967295, 1},
	[UDP_S] = {"udp_s", "timeout of UDP, s", 0.001, 86400, 300},
	[ICMP_S] = {"icmp_s", "timeout of ICMP queries, s", 0.001, 86400, 60},
	[TRANSITORY_S] = {"transitory_s", "timeout of opening or closing TCP, s", 0.001, 86400,
			  240},
	[ESTABLISHED_S] = {"established_s", "timeout of established TCP, s", 0.001, 864000, 7440},
	[PENDING] = {"pending", "most datagrams in reassembly", 1, 65536, 1024},
	[PENDING_S] = {"pending_s", "timeout of reassembly, s", 0.001, 120, 30},
	[FORWARDS] = {"forwards", "file with external ports that are forwarded; none if empty",
		      .text = ""},
	[PAIRS] = {"pairs", "most pairs of hosts with GRE, ESP or SCTP; 0: these are freed", 0, 65536,
		   4096},
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "drop"),
};

static const struct nf_counter counters[] = {
	[OUTWARD] = {"outward", "outbound packets translated"},
	[INWARD] = {"inward", "inbound packets translated"},
	[HAIRPINNED] = {"hairpinned", "outbound packets that were hairpinned"},
	[ERRORS] = {"errors", "ICMP errors translated"},
	[STARTED] = {"started", "sessions opened"},
	[AGED] = {"aged", "sessions removed after a timeout"},
	[EXHAUSTED] = {"exhausted",
		       "packets freed because no port or pair is left, or none for their host"},
	[FULL] = {"full", "packets freed because the table is full"},
	[UNMAPPED] = {"unmapped", "packets without a mapping, freed"},
	[FRAGMENTS] = {"fragments", "fragments received"},
	[REASSEMBLED] = {"reassembled", "packets reassembled from them"},
	[FRAGMENTS_SENT] = {"fragments_sent", "fragments of those packets sent"},
	[DUPLICATES] = {"duplicates", "fragments whose bytes had arrived, freed"},
	[OVERLAPPING] = {"overlapping", "fragments of packets whose fragments overlap with other "
					"bytes or ends, freed"},
	[EVICTED] = {"evicted", "fragments freed because reassembly holds too many packets"},
	[UNASSEMBLED] = {"unassembled", "fragments of incomplete packets, or invalid, freed"},
	[CONGESTED] = {"congested", "packets with fragments marked as congested and others whose "
				    "sender lacks ECN, freed"},
	[NO_ROOM] = {"no_room", "packets freed without buffers to fragment them again"},
	[UNSUPPORTED] = {"unsupported", "packets of unsupported protocols and ICMP types, freed"},
	NF_OTHER_COUNTERS(OTHER),
};

static void destroy(struct nf *nf)
{
	struct nat *nat = nf->state;

	sessions_destroy(nat->sessions);
	reassembly_destroy(nat->reassembly);
	pairs_destroy(nat->pairs);
}

static struct sessions *create_sessions(struct nf *nf)
{
	const double *settings = nf->settings;
	const struct sessions_setup setup = {
		.most = (uint32_t)settings[SESSIONS],
		.first_address = (uint32_t)settings[FIRST_ADDRESS],
		.addresses = (uint32_t)settings[ADDRESSES],
		.host_ports = (uint32_t)settings[HOST_PORTS],
		.seed = (uint64_t)settings[SEED],
		.timeout_us = {[PHASE_UDP] = (uint64_t)(settings[UDP_S] * 1e6),
			       [PHASE_ICMP] = (uint64_t)(settings[ICMP_S] * 1e6),
			       [PHASE_TCP_TRANSITORY] = (uint64_t)(settings[TRANSITORY_S] * 1e6),
			       [PHASE_TCP_ESTABLISHED] = (uint64_t)(settings[ESTABLISHED_S] * 1e6)},
		.aged = &nf->counters[AGED],
	};

	return sessions_create(&setup, nf->socket);
}

static int create(struct nf *nf)
{
	const struct reassembly_limits limits =
		reassembly_limits((uint32_t)nf->settings[PENDING], nf->settings[PENDING_S]);
	const char *forwards = nf->texts[FORWARDS];
	const uint32_t pairs = (uint32_t)nf->settings[PAIRS];
	struct nat *nat = nf->state;

	nat->sessions = create_sessions(nf);
	if (nat->sessions && *forwards && !forwards_read(forwards, nat->sessions))
		return -EINVAL;
	if (nat->sessions)
		nat->reassembly =
			reassembly_create(nf->kind->name, &limits, &nf->counters[DUPLICATES]);
	if (nat->reassembly && pairs > 0)
		nat->pairs = pairs_create(pairs, (uint64_t)(nf->settings[UDP_S] * 1e6));
	return nat->reassembly && (pairs == 0 || nat->pairs) ? 0 : -ENOMEM;
}

/* The fast path of outbound packets: plain packets of known sessions. */
static void send_plain(struct nf *nf, struct flow_burst *burst, struct nf_out *out)
{
	struct sessions *sessions = sessions_of(nf);
	struct rte_mbuf *known[NF_BURST];
	int32_t places[NF_BURST];
	uint16_t n_known = 0;

	sessions_look_up(sessions, burst->keys, burst->n, places);
	for (uint16_t i = 0; i < burst->n; i++) {
		struct rte_mbuf *mbuf = burst->packets[i];
		struct session *session = &sessions->sessions[places[i]];

		if (unlikely(places[i] < 0 || (session->marks & HAIRPINS))) {
			struct crossing crossing = {.mbuf = mbuf, .packet = packet_plain(mbuf)};

			crossing_send_outward(nf, &crossing, &burst->keys[i], places[i], out);
			continue;
		}
		translate_plain(mbuf, session, nf->now_us);
		known[n_known++] = mbuf;
	}
	nf_send_bulk(out, known, n_known);
	nf->counters[OUTWARD] += n_known;
}

/*
 * Whether the fast path may take the plain packets of a burst from inside: all packets from there
 * are plain. Else they would overtake those of their flow that are not, such as those with options.
 */
static bool all_plain(struct rte_mbuf **packets, uint16_t n)
{
	bool plain = true;

	for (uint16_t i = 0; i < n; i++)
		plain &= packet_from(packets[i]) != NF_INSIDE || packet_is_plain(packets[i]);
	return plain;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const bool fast = all_plain(packets, n);
	struct nat *nat = nf->state;
	struct crossings others;
	struct flow_burst plain;

	sessions_age(nat->sessions, nf->now_us);
	others.n = 0;
	flow_burst_begin(&plain, nf, 0);
	for (uint16_t i = 0; i < n; i++) {
		if (likely(fast && packet_from(packets[i]) == NF_INSIDE))
			flow_burst_add(&plain, packets[i], packet_plain_flow(packets[i]));
		else
			crossings_add(nf, &others, packets[i], out);
	}
	if (plain.n > 0)
		send_plain(nf, &plain, out);
	if (others.n > 0)
		crossings_send(nf, &others, out);
	reassembly_expire(nat->reassembly, nf->now_us);
}

static void poll(struct nf *nf, struct nf_out *out)
{
	struct nat *nat = nf->state;

	(void)out;
	reassembly_expire(nat->reassembly, nf->now_us);
}

static void flush(struct nf *nf, struct nf_out *out)
{
	struct nat *nat = nf->state;

	(void)out; /* held fragments cannot be translated */
	reassembly_free_all(nat->reassembly);
}

NF_KIND("NAT", "inside hosts share a few external addresses", .state_bytes = sizeof(struct nat),
	.create = create, .process = process, .poll = poll, .flush = flush, .destroy = destroy)
