#include "core/icmp_report.h"

#include "core/ipv4.h"

#define INTERNETWORK_CONTROL 0xc0 /* precedence 6: RFC 1812, section 4.3.2.5 */
#define ERROR_TTL 64

struct error_headers {
	struct rte_ipv4_hdr ip;
	uint8_t type, code;
	rte_be16_t checksum;
	rte_be16_t unused;
	rte_be16_t mtu;
} __rte_packed;

static const struct {
	uint8_t type, code;
} messages[] = {
	[ICMP_NET_UNREACHABLE] = {3, 0},
	[ICMP_HOST_UNREACHABLE] = {3, 1},
	[ICMP_FRAGMENTATION_NEEDED] = {3, 4},
	[ICMP_TTL_EXCEEDED] = {11, 0},
};

struct icmp_reporter icmp_reporter_for(rte_be32_t address, struct rte_mempool *pool,
				       const double settings[2])
{
	return (struct icmp_reporter){
		.address = address,
		.pool = pool,
		.per_us = settings[0] / 1e6,
		.most = settings[1],
		.tokens = settings[1],
	};
}

static bool carries_error(const struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet->protocol != IPPROTO_ICMP)
		return false;
	if (packet->l4 == 0)
		return true; /* too short to see whether it is one */
	return icmp_is_error(*rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, packet->l4));
}

/* RFC 1812, section 4.3.2.7. */
static bool may_report(const struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_ipv4_hdr *, packet->l3);

	return packet_has_ipv4(packet) && !packet->non_initial_fragment &&
	       !rte_is_multicast_ether_addr(&ethernet->dst_addr) && ipv4_is_host(ip->src_addr) &&
	       ipv4_is_host(ip->dst_addr) && !carries_error(mbuf, packet);
}

static bool within_rate(struct icmp_reporter *reporter, uint64_t now_us)
{
	if (now_us > reporter->last_us) { /* a clock that is set back must not fill it */
		reporter->tokens = RTE_MIN(reporter->tokens + (double)(now_us - reporter->last_us) *
								      reporter->per_us,
					   reporter->most);
		reporter->last_us = now_us;
	}
	if (reporter->tokens < 1)
		return false;
	reporter->tokens -= 1;
	return true;
}

/* Swap source and destination of the frame. */
static void turn_ethernet(struct rte_mbuf *mbuf)
{
	struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
	const struct rte_ether_addr source = ethernet->src_addr;

	ethernet->src_addr = ethernet->dst_addr;
	ethernet->dst_addr = source;
}

/* Append as much of the datagram as fits, across its segments. */
static bool quote(const struct rte_mbuf *about, uint16_t l3, uint16_t length, void *to)
{
	const void *from = rte_pktmbuf_read(about, l3, length, to);

	if (from && from != to)
		memcpy(to, from, length);
	return from != NULL;
}

static void fill(struct icmp_reporter *reporter, struct error_headers *headers, uint16_t quoted,
		 enum icmp_problem problem, uint16_t mtu, rte_be32_t to)
{
	*headers = (struct error_headers){
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
		       .type_of_service = INTERNETWORK_CONTROL,
		       .total_length = rte_cpu_to_be_16(sizeof(*headers) + quoted),
		       .packet_id = rte_cpu_to_be_16(reporter->next_id++),
		       .time_to_live = ERROR_TTL,
		       .next_proto_id = IPPROTO_ICMP,
		       .src_addr = reporter->address,
		       .dst_addr = to},
		.type = messages[problem].type,
		.code = messages[problem].code,
		.mtu = rte_cpu_to_be_16(mtu),
	};
	headers->ip.hdr_checksum = rte_ipv4_cksum(&headers->ip);
	headers->checksum = (rte_be16_t)~rte_raw_cksum(
		&headers->type, sizeof(*headers) - sizeof(headers->ip) + quoted);
}

/* An error with `most` bytes of the datagram at `quoted`, behind `ethernet` bytes as they came. */
static struct rte_mbuf *error_about(struct icmp_reporter *reporter, struct rte_mbuf *about,
				    uint16_t ethernet, uint16_t quoted, uint16_t most,
				    enum icmp_problem problem, uint16_t mtu)
{
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(about, const struct rte_ipv4_hdr *, quoted);
	const uint16_t length = RTE_MIN(most, ICMP_REPORT_MOST - sizeof(struct error_headers));
	struct rte_mbuf *error = reporter->pool ? rte_pktmbuf_alloc(reporter->pool) : NULL;
	struct error_headers *headers;
	char *data;

	if (!error)
		return NULL;
	data = rte_pktmbuf_append(error, ethernet + sizeof(*headers) + length);
	if (!data || !quote(about, quoted, length, data + ethernet + sizeof(*headers))) {
		rte_pktmbuf_free(error);
		return NULL;
	}
	memcpy(data, rte_pktmbuf_mtod(about, const void *), ethernet);
	headers = (struct error_headers *)(data + ethernet);
	fill(reporter, headers, length, problem, mtu, ip->src_addr);
	metadata_inherit(error, about);
	return error;
}

enum icmp_report icmp_report(struct icmp_reporter *reporter, struct rte_mbuf *about,
			     const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			     uint64_t now_us, struct rte_mbuf **error)
{
	const uint16_t l3 = packet->l3;

	if (!may_report(about, packet))
		return ICMP_SUPPRESSED;
	if (!within_rate(reporter, now_us))
		return ICMP_LIMITED;
	*error = error_about(reporter, about, l3, l3,
			     rte_be_to_cpu_16(packet_ipv4(about, packet)->total_length), problem,
			     mtu);
	if (!*error)
		return ICMP_LIMITED;
	turn_ethernet(*error);
	packet_send_back(*error);
	return ICMP_SENT;
}

enum icmp_report icmp_report_quoted(struct icmp_reporter *reporter, struct rte_mbuf *error,
				    const struct packet *headers, const struct packet *quoted,
				    enum icmp_problem problem, uint16_t mtu, uint64_t now_us,
				    struct rte_mbuf **made)
{
	if (!may_report(error, quoted))
		return ICMP_SUPPRESSED;
	if (!within_rate(reporter, now_us))
		return ICMP_LIMITED;
	*made = error_about(reporter, error, headers->l3, quoted->l3,
			    quoted->payload - quoted->l3, problem, mtu);
	return *made ? ICMP_SENT : ICMP_LIMITED;
}

void icmp_report_problem(struct icmp_reporter *reporter, struct rte_mbuf *about,
			 const struct packet *packet, enum icmp_problem problem, uint16_t mtu,
			 uint64_t now_us, uint64_t *counters, struct nf_out *out)
{
	struct rte_mbuf *error;
	const enum icmp_report report =
		icmp_report(reporter, about, packet, problem, mtu, now_us, &error);

	counters[report]++;
	if (report == ICMP_SENT)
		nf_send(out, error);
}
