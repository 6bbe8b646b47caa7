#include "core/traffic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_memcpy.h>
#include <rte_udp.h>

#include "core/capture.h"
#include "core/memory.h"
#include "core/nf.h"
#include "core/payloads.h"

/*
 * Draws of flows with unequal popularity, made in advance: enough that hardly any flow is never
 * drawn.
 */
#define LEAST_PICKS (1u << 16)
#define PICKS_PER_FLOW 4

#define MOST_FLOWS ((1u << 24) - 2) /* each has an address in 10.0.0.0/8 */

/* The headers of every packet. */
struct headers {
	struct rte_ether_hdr ethernet;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __rte_packed __rte_aligned(2);

struct traffic {
	struct rte_mempool *pool;
	struct headers headers;
	uint32_t partial_sum; /* of the IPv4 header without its addresses */
	uint32_t flows;
	uint16_t length; /* frame without its checksum */
	uint64_t random;
	uint32_t *picks; /* NULL if all flows are equally popular */
	uint32_t n_picks, next_pick;
	uint32_t number;     /* of the next packet */
	uint32_t sweep_left; /* flows still to be sent once before random picks */
	uint8_t *payloads;   /* as they were written, one after another; NULL: nobody alters them */
	double mtbr;
	struct capture *capture;
};

static uint32_t mixed(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ (x >> 16);
}

static struct headers usual_headers(uint16_t length)
{
	const uint16_t ip = length - sizeof(struct rte_ether_hdr);
	struct headers headers = {
		.ethernet = {.dst_addr = {{2, 0, 0, 0, 0, 1}},
			     .src_addr = {{2, 0, 0, 0, 0, 2}},
			     .ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)},
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
		       .total_length = rte_cpu_to_be_16(ip),
		       .time_to_live = 64,
		       .next_proto_id = IPPROTO_UDP},
		/* no checksum: RFC 768 allows it, and it would cost a pass over the payload */
		.udp = {.dgram_len = rte_cpu_to_be_16(ip - sizeof(struct rte_ipv4_hdr))},
	};

	return headers;
}

/* Source and destination of a flow: from 10/8 to ordinary unicast networks. */
static inline void address(struct headers *headers, uint32_t flow)
{
	const uint32_t drawn = mixed(flow);

	headers->ip.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 1) + flow);
	headers->ip.dst_addr =
		rte_cpu_to_be_32(((11 + (drawn >> 24) % 100) << 24) | (drawn & 0xffffff));
	headers->udp.src_port = rte_cpu_to_be_16(1024 + (drawn >> 8) % 60000);
	headers->udp.dst_port = rte_cpu_to_be_16(1 + drawn % 1023);
}

static inline rte_be16_t header_checksum(const struct traffic *traffic,
					 const struct headers *headers)
{
	uint32_t sum = traffic->partial_sum;

	sum += (headers->ip.src_addr & 0xffff) + (headers->ip.src_addr >> 16);
	sum += (headers->ip.dst_addr & 0xffff) + (headers->ip.dst_addr >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (rte_be16_t)~sum;
}

static inline uint32_t pick(struct traffic *traffic)
{
	if (unlikely(traffic->sweep_left > 0))
		return --traffic->sweep_left;
	if (!traffic->picks)
		return chance(&traffic->random, traffic->flows);
	if (++traffic->next_pick == traffic->n_picks)
		traffic->next_pick = 0;
	return traffic->picks[traffic->next_pick];
}

/* Zipf's law: the k-th flow is drawn 1/k^exponent times as often as the first. */
static uint32_t *zipf_picks(uint32_t flows, double exponent, uint32_t n, uint64_t *random)
{
	uint32_t *picks = nf_zalloc(n * sizeof(*picks));
	double *cumulative = nf_zalloc(flows * sizeof(*cumulative)), sum = 0;

	if (picks && cumulative) {
		for (uint32_t flow = 0; flow < flows; flow++)
			cumulative[flow] = sum += pow(flow + 1.0, -exponent);
		for (uint32_t i = 0; i < n; i++) {
			double draw = sum * chance(random, 1u << 30) / (1u << 30);
			uint32_t low = 0, high = flows - 1;

			while (low < high) {
				uint32_t middle = low + (high - low) / 2;

				if (cumulative[middle] < draw)
					low = middle + 1;
				else
					high = middle;
			}
			picks[i] = low;
		}
	} else {
		nf_free(picks);
		picks = NULL;
	}
	nf_free(cumulative);
	return picks;
}

static struct rte_mempool *round_pool(void)
{
	static unsigned int packet_spec;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "traffic_%u",
		 __atomic_fetch_add(&packet_spec, 1, __ATOMIC_RELAXED));
	/*
	 * A ring without a cache: the buffer freed first is received first, so all payloads are
	 * used. Functions on several cores may free.
	 */
	pool = rte_pktmbuf_pool_create_by_ops(name, TRAFFIC_PACKETS, 0, 0,
					      RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY,
					      "ring_mp_sc");
	if (!pool)
		fprintf(stderr, "traffic: no memory for packets: %s\n", rte_strerror(rte_errno));
	return pool;
}

struct payload_filling {
	struct payloads payloads;
	uint16_t room;
};

static void fill_payload(struct rte_mempool *pool, void *filling, void *object, unsigned int i)
{
	struct payload_filling *fill = filling;
	struct rte_mbuf *packet = object;

	(void)pool;
	(void)i;
	payloads_fill(&fill->payloads,
		      (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM + sizeof(struct headers),
		      fill->room);
}

static int check_profile(const struct traffic_profile *profile)
{
	if (profile->flows == 0 || profile->flows > MOST_FLOWS ||
	    profile->packet_size < TRAFFIC_LEAST_SIZE + RTE_ETHER_CRC_LEN ||
	    profile->packet_size > RTE_MBUF_DEFAULT_DATAROOM || !(profile->mtbr >= 0) ||
	    !(profile->zipf >= 0)) {
		fprintf(stderr,
			"traffic: cannot generate %u flows of %u B, %g matches/MB, Zipf %g\n",
			profile->flows, profile->packet_size, profile->mtbr, profile->zipf);
		return -EINVAL;
	}
	return 0;
}

struct traffic *traffic_create(const struct traffic_profile *profile, uint64_t seed)
{
	struct payload_filling filling = {.payloads = payloads_at(profile->mtbr, seed)};
	struct traffic *traffic;

	if (check_profile(profile) < 0 || metadata_register() < 0)
		return NULL;
	traffic = nf_zalloc(sizeof(*traffic));
	if (!traffic)
		return NULL;
	traffic->flows = profile->flows;
	traffic->length = profile->packet_size - RTE_ETHER_CRC_LEN;
	traffic->random = mixed(seed) | 1ull << 40;
	traffic->headers = usual_headers(traffic->length);
	traffic->partial_sum = rte_raw_cksum(&traffic->headers.ip, sizeof(traffic->headers.ip));
	traffic->pool = round_pool();
	traffic->n_picks = RTE_MAX(LEAST_PICKS, PICKS_PER_FLOW * profile->flows);
	if (profile->zipf > 0)
		traffic->picks = zipf_picks(profile->flows, profile->zipf, traffic->n_picks,
					    &traffic->random);
	if (!traffic->pool || (profile->zipf > 0 && !traffic->picks)) {
		traffic_destroy(traffic);
		return NULL;
	}
	filling.room = traffic->length - sizeof(struct headers);
	rte_mempool_obj_iter(traffic->pool, fill_payload, &filling);
	traffic->mtbr = payloads_mtbr(&filling.payloads);
	return traffic;
}

struct traffic *traffic_create_pcap(const char *path)
{
	struct traffic *traffic = nf_zalloc(sizeof(*traffic));

	if (!traffic)
		return NULL;
	if (metadata_register() < 0) {
		traffic_destroy(traffic);
		return NULL;
	}
	traffic->capture = capture_open(path);
	if (!traffic->capture) {
		traffic_destroy(traffic);
		return NULL;
	}
	return traffic;
}

void traffic_destroy(struct traffic *traffic)
{
	if (!traffic)
		return;
	capture_close(traffic->capture);
	rte_mempool_free(traffic->pool);
	nf_free(traffic->picks);
	nf_free(traffic->payloads);
	nf_free(traffic);
}

static size_t payload_length(const struct traffic *traffic)
{
	return traffic->length - sizeof(struct headers);
}

static void keep_payload(struct rte_mempool *pool, void *argument, void *object, unsigned int i)
{
	struct traffic *traffic = argument;
	const struct rte_mbuf *packet = object;
	const size_t length = payload_length(traffic);

	(void)pool;
	memcpy(traffic->payloads + i * length,
	       (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM + sizeof(struct headers), length);
}

int traffic_renew(struct traffic *traffic)
{
	if (traffic->capture)
		return -ENOTSUP;
	traffic->payloads = nf_zalloc(TRAFFIC_PACKETS * payload_length(traffic) + 1);
	if (!traffic->payloads)
		return -ENOMEM;
	rte_mempool_obj_iter(traffic->pool, keep_payload, traffic);
	return 0;
}

static inline void renew_payload(const struct traffic *traffic, struct headers *headers)
{
	const size_t length = payload_length(traffic);

	rte_memcpy(headers + 1, traffic->payloads + traffic->number % TRAFFIC_PACKETS * length,
		   length);
}

uint16_t traffic_receive(struct traffic *traffic, struct rte_mbuf **packets, uint16_t n)
{
	if (traffic->capture)
		return capture_receive(traffic->capture, packets, n);
	n = RTE_MIN((unsigned int)n, rte_mempool_avail_count(traffic->pool));
	if (n == 0 || rte_pktmbuf_alloc_bulk(traffic->pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		struct headers *headers = rte_pktmbuf_mtod(packets[i], struct headers *);

		*headers = traffic->headers;
		address(headers, pick(traffic));
		headers->ip.hdr_checksum = header_checksum(traffic, headers);
		if (traffic->payloads)
			renew_payload(traffic, headers);
		packets[i]->data_len = traffic->length;
		packets[i]->pkt_len = traffic->length;
		metadata_begin(packets[i], NF_INSIDE, traffic->number++);
	}
	return n;
}

void traffic_sweep(struct traffic *traffic)
{
	traffic->sweep_left = traffic->flows;
}

double traffic_mtbr(const struct traffic *traffic)
{
	return traffic->mtbr;
}
