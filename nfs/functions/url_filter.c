/*
 * UrlFilter: blocks requests to the domains and URLs of a list: HTTP/1 by host and path, TLS by the
 * server name of its ClientHello, at any TCP port. All other IP packets pass; frames that are not
 * understood are dropped, unless `unknown`.
 *
 * Each segment is judged by itself. A request whose host is behind the end of its segment is
 * incomplete: it passes, or is blocked if so set. Requests over HTTP/2 and QUIC, names that TLS
 * encrypts, and the paths of requests in TLS are not seen.
 */
#include <errno.h>

#include "core/nf.h"
#include "core/packet.h"
#include "functions/url_filter/list.h"
#include "functions/url_filter/request.h"
#include "functions/url_filter/url.h"

/* Resets the TCP connection of a packet that does not go on. */

#define TTL 64

/* Write an IPv4 header for a segment without payload, and its TCP checksum. */
static void put_ipv4(struct rte_mbuf *made, struct rte_mbuf *about, const struct packet *packet,
		     bool back)
{
	const struct rte_ipv4_hdr *of = packet_ipv4(about, packet);
	struct rte_ipv4_hdr *ip = packet_ipv4(made, packet);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = RTE_BE16(sizeof(*ip) + sizeof(*tcp)),
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = TTL,
		.next_proto_id = IPPROTO_TCP,
		.src_addr = back ? of->dst_addr : of->src_addr,
		.dst_addr = back ? of->src_addr : of->dst_addr,
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
}

/* The same of IPv6. */
static void put_ipv6(struct rte_mbuf *made, const struct rte_mbuf *about,
		     const struct packet *packet, bool back)
{
	const struct rte_ipv6_hdr *of = packet_ipv6(about, packet);
	struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(made, struct rte_ipv6_hdr *, packet->l3);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	*ip = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = RTE_BE16(sizeof(*tcp)),
		.proto = IPPROTO_TCP,
		.hop_limits = TTL,
	};
	memcpy(ip->src_addr, back ? of->dst_addr : of->src_addr, sizeof(ip->src_addr));
	memcpy(ip->dst_addr, back ? of->src_addr : of->dst_addr, sizeof(ip->dst_addr));
	tcp->cksum = rte_ipv6_udptcp_cksum(ip, tcp);
}

/* A copy of the Ethernet header and tags of `about`, and a TCP segment with the rest of them. */
static struct rte_mbuf *segment(struct rte_mempool *pool, struct rte_mbuf *about,
				const struct packet *packet, const struct rte_tcp_hdr *tcp,
				bool back)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;
	const bool ipv6 = packet->type == PACKET_IPV6;
	const uint16_t l4 = packet->l3 + (ipv6 ? sizeof(struct rte_ipv6_hdr)
					       : sizeof(struct rte_ipv4_hdr));
	struct rte_ether_hdr *ethernet;

	if (!made)
		return NULL;
	ethernet = (struct rte_ether_hdr *)rte_pktmbuf_append(made, l4 + sizeof(*tcp));
	memcpy(ethernet, rte_pktmbuf_mtod(about, void *), packet->l3);
	*rte_pktmbuf_mtod_offset(made, struct rte_tcp_hdr *, l4) = *tcp;
	if (ipv6)
		put_ipv6(made, about, packet, back);
	else
		put_ipv4(made, about, packet, back);
	metadata_inherit(made, about);
	if (back) {
		const struct rte_ether_addr source = ethernet->src_addr;

		ethernet->src_addr = ethernet->dst_addr;
		ethernet->dst_addr = source;
		packet_send_back(made);
	}
	return made;
}

static const struct rte_tcp_hdr *tcp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
}

/*
 * A reset to the packet's receiver, in place of the packet, or back to its sender as of the
 * receiver (RFC 9293, section 3.5.2). NULL without a buffer.
 */
static struct rte_mbuf *reset_forward(struct rte_mempool *pool, struct rte_mbuf *about,
				      const struct packet *packet)
{
	const struct rte_tcp_hdr *of = tcp_of(about, packet);
	const struct rte_tcp_hdr tcp = {
		.src_port = of->src_port,
		.dst_port = of->dst_port,
		.sent_seq = of->sent_seq,
		.data_off = (sizeof(tcp) / 4) << 4,
		.tcp_flags = RTE_TCP_RST_FLAG,
	};

	return segment(pool, about, packet, &tcp, false);
}

static struct rte_mbuf *reset_back(struct rte_mempool *pool, struct rte_mbuf *about,
				   const struct packet *packet)
{
	const struct rte_tcp_hdr *of = tcp_of(about, packet);
	struct rte_tcp_hdr tcp = {
		.src_port = of->dst_port,
		.dst_port = of->src_port,
		.sent_seq = of->recv_ack,
		.data_off = (sizeof(tcp) / 4) << 4,
		.tcp_flags = RTE_TCP_RST_FLAG,
	};

	if (!(of->tcp_flags & RTE_TCP_ACK_FLAG)) {
		tcp.sent_seq = 0;
		tcp.recv_ack =
			rte_cpu_to_be_32(rte_be_to_cpu_32(of->sent_seq) + packet->payload_length +
					 !!(of->tcp_flags & RTE_TCP_SYN_FLAG) +
					 !!(of->tcp_flags & RTE_TCP_FIN_FLAG));
		tcp.tcp_flags |= RTE_TCP_ACK_FLAG;
	}
	return segment(pool, about, packet, &tcp, true);
}

#define MOST_BYTES 4096 /* of a payload in several segments */

enum { LIST, URLS, SEED, BLOCK_INCOMPLETE, RESET, UNKNOWN, ARP };
static const struct nf_parameter parameters[] = {
	[LIST] = {"list", "file with the list; empty: a generated list", .text = ""},
	[URLS] = {"urls", "entries of a generated list", 0, 1000000, 1000},
	[SEED] = {"seed", "seed of a generated list", 0, 4294967295, 1},
	[BLOCK_INCOMPLETE] = {"block_incomplete", "1: incomplete requests are blocked", 0, 1, 0},
	[RESET] = {"reset", "1: both ends of a blocked connection get a TCP reset", 0, 1, 0},
	[UNKNOWN] = {NF_UNKNOWN("drop")},
	[ARP] = {NF_ARP},
};

enum {
	PASSED,
	BLOCKED,
	REQUESTS,
	HANDSHAKES,
	INCOMPLETE,
	RESETS,
	UNBUFFERED,
	OTHER,
	MALFORMED = OTHER + 2,
};
static const struct nf_counter counters[] = {
	[PASSED] = {"passed", "IP packets sent on"},
	[BLOCKED] = {"blocked", "packets freed"},
	[REQUESTS] = {"requests", "HTTP requests with a host"},
	[HANDSHAKES] = {"handshakes", "TLS handshakes with a server name"},
	[INCOMPLETE] = {"incomplete", "packets with a request or handshake without a host so far"},
	[RESETS] = {"resets", "TCP resets sent"},
	[UNBUFFERED] = {"unbuffered", "TCP resets not sent without a buffer"},
	NF_OTHER_COUNTERS(OTHER),
	[MALFORMED] = {"malformed", "packets freed"},
};

static int create(struct nf *nf)
{
	const char *file = nf->texts[LIST];

	nf->state = file[0] ? url_list_read(nf->kind->name, file)
			    : url_list_generate(nf->kind->name, (uint32_t)nf->settings[URLS],
						(uint64_t)nf->settings[SEED]);
	return nf->state ? 0 : -EINVAL;
}

static bool is_listed(const struct url_table *table, struct piece authority, const char *path,
		      size_t path_length)
{
	char host[URL_LONGEST_HOST];
	const size_t length = url_host(authority.at, authority.length, host);

	return length > 0 && url_table_covers(table, host, length, path, path_length);
}

/* Whether the list has one of a request's hosts with its path. */
static bool is_request_listed(const struct url_table *table, const struct request *request)
{
	char path[URL_LONGEST_PATH];
	size_t length;

	if (!url_path(request->target.at, request->target.length, path, &length))
		length = 0; /* only domains are matched */
	for (uint8_t i = 0; i < request->n_hosts; i++)
		if (is_listed(table, request->hosts[i], path, length))
			return true;
	return false;
}

/* Whether a payload is to be blocked; a segment may have several requests. */
static bool is_blocked(struct nf *nf, const char *bytes, size_t length)
{
	size_t at = 0;

	do {
		const struct request request = request_read(bytes + at, length - at);

		if (request.kind == REQUEST_NONE)
			return false;
		if (request.n_hosts > 0)
			nf->counters[request.kind == REQUEST_TLS ? HANDSHAKES : REQUESTS]++;
		if (is_request_listed(nf->state, &request))
			return true;
		if (request.kind == REQUEST_INCOMPLETE && request.n_hosts == 0) {
			nf->counters[INCOMPLETE]++;
			return nf->settings[BLOCK_INCOMPLETE] == 1;
		}
		at = request.end > 0 ? at + request.end : length;
	} while (at < length);
	return false;
}

static bool is_packet_blocked(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet)
{
	char bytes[MOST_BYTES];
	uint16_t length = packet->payload_length;
	const char *payload;

	if (packet->protocol != IPPROTO_TCP || packet->payload == 0 || length == 0)
		return false;
	if (mbuf->nb_segs > 1)
		length = RTE_MIN(length, MOST_BYTES);
	payload = rte_pktmbuf_read(mbuf, packet->payload, length, bytes);
	return is_blocked(nf, payload, length);
}

static void send_reset(struct nf *nf, struct rte_mbuf *reset, struct nf_out *out)
{
	nf->counters[reset ? RESETS : UNBUFFERED]++;
	if (reset)
		nf_send(out, reset);
}

static void block(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		  struct nf_out *out)
{
	nf->counters[BLOCKED]++;
	if (nf->settings[RESET] == 1) {
		send_reset(nf, reset_forward(nf->spare, mbuf, packet), out);
		send_reset(nf, reset_back(nf->spare, mbuf, packet), out);
	}
	rte_pktmbuf_free(mbuf);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = packets[i];
		const struct packet packet = packet_ip_headers(mbuf);

		if (unlikely(packet.type == PACKET_MALFORMED)) {
			nf_drop(nf, mbuf, MALFORMED);
		} else if (unlikely(!packet_has_flow(&packet))) {
			nf_other(nf, mbuf, packet.type, OTHER, out);
		} else if (is_packet_blocked(nf, mbuf, &packet)) {
			block(nf, mbuf, &packet, out);
		} else {
			nf->counters[PASSED]++;
			nf_send(out, mbuf);
		}
	}
}

static void destroy(struct nf *nf)
{
	url_table_destroy(nf->state);
}

NF_KIND("UrlFilter", "blocks HTTP requests and TLS handshakes by a list of domains and URLs",
	.reads_payloads = true, .create = create, .process = process, .destroy = destroy)
