#include "cycles/compare.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <rte_cycles.h>

#include "core/traffic.h"
#include "cycles/peer.h"

#define SLICES 301
#define MOST_BURSTS 64 /* per slice */
#define SLICE_MS 1     /* longest slice: slow functions have fewer bursts in one */
#define ALIKE_BURSTS 64

static struct peer *peers;

/* The order in which they are measured. */
static bool comes_before(const struct peer *one, const struct peer *other)
{
	const int difference = strcmp(one->function, other->function);

	return difference < 0 || (difference == 0 && strcmp(one->name, other->name) < 0);
}

void peer_register(struct peer *peer)
{
	struct peer **place = &peers;

	while (*place && comes_before(*place, peer))
		place = &(*place)->next;
	peer->next = *place;
	*place = peer;
}

struct subject {
	struct nf *nf;           /* NULL for a peer */
	const struct peer *peer; /* it, or that beside which a function is measured */
	void *state;
	struct traffic *traffic;
	uint64_t sent, sent_bytes;
	double slices[SLICES]; /* cycles per packet */
};

static void count_sent(struct subject *one, const struct nf_out *out)
{
	one->sent += out->n;
	for (uint32_t i = 0; i < out->n; i++)
		one->sent_bytes += rte_pktmbuf_pkt_len(out->packets[i]);
}

static double slice(struct subject *one, int bursts)
{
	static struct nf_out out;
	uint64_t cycles = 0, packets = 0;

	for (int burst = 0; burst < bursts; burst++) {
		struct rte_mbuf *received[NF_BURST];
		uint16_t n = traffic_receive(one->traffic, received, NF_BURST);
		uint64_t begin;

		if (one->peer->prepare)
			n = one->peer->prepare(one->state, received, n);
		begin = rte_rdtsc();
		if (one->nf) {
			one->nf->now_us += BURST_US;
			nf_process(one->nf, received, n, &out);
		} else {
			one->peer->process(one->state, received, n, &out);
		}
		cycles += rte_rdtsc() - begin;
		packets += n;
		count_sent(one, &out);
		nf_out_free(&out);
	}
	return (double)cycles / packets;
}

/* Process every flow before timing, or as many as time allows. */
static void warm(struct subject *one, uint32_t flows)
{
	const uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * WARM_MS;

	for (uint32_t packets = 0; packets < 12 * flows && rte_rdtsc() < end; packets += NF_BURST)
		slice(one, 1);
}

/*
 * Check that both do the same work: for the same first packets they send as many packets, and
 * nearly as many bytes, because payloads differ.
 */
static bool alike(struct subject *nf, struct subject *peer)
{
	nf->sent = nf->sent_bytes = peer->sent = peer->sent_bytes = 0;
	slice(nf, ALIKE_BURSTS);
	slice(peer, ALIKE_BURSTS);
	if (nf->sent == peer->sent && fabs((double)nf->sent_bytes - (double)peer->sent_bytes) <
					      0.001 * (double)nf->sent_bytes)
		return true;
	fprintf(stderr,
		"cycles: %s sends %" PRIu64 " packets of %" PRIu64 " bytes, its peer %s %" PRIu64
		" of %" PRIu64 "\n",
		nf->nf->kind->name, nf->sent, nf->sent_bytes, peer->peer->name, peer->sent,
		peer->sent_bytes);
	return false;
}

/* The number of bursts in a slice of either. */
static int bursts_of_slice(struct subject *nf, struct subject *peer)
{
	const double room = (double)rte_get_tsc_hz() / 1000 * SLICE_MS / NF_BURST;
	const double bursts = room / RTE_MAX(slice(nf, 8), slice(peer, 8));

	return (int)RTE_MIN(RTE_MAX(bursts, 1.0), (double)MOST_BURSTS);
}

static bool measure(struct subject *nf, struct subject *peer, uint32_t flows)
{
	double ratios[SLICES];
	int bursts;

	if (!alike(nf, peer))
		return false;
	warm(nf, flows);
	warm(peer, flows);
	bursts = bursts_of_slice(nf, peer);
	for (int i = 0; i < SLICES; i++) {
		nf->slices[i] = slice(nf, bursts);
		peer->slices[i] = slice(peer, bursts);
		ratios[i] = nf->slices[i] / peer->slices[i];
	}
	printf("%s,%s,%u,%.1f,%.1f,%.3f,\"%s\"\n", nf->nf->kind->name, peer->peer->name, flows,
	       quantile(nf->slices, SLICES, 0.5), quantile(peer->slices, SLICES, 0.5),
	       quantile(ratios, SLICES, 0.5), peer->peer->does);
	fflush(stdout);
	return true;
}

static bool compare(const struct peer *with, const struct traffic_profile *profile,
		   struct rte_mempool *spare)
{
	const struct nf_config config = config_of(with->function, spare);
	struct subject peer = {.peer = with,
			       .state = with->create(profile->flows),
			       .traffic = traffic_create(profile, 1)};
	struct subject nf = {.nf = nf_create(&config, NULL, 0),
			     .peer = with,
			     .state = peer.state,
			     .traffic = traffic_create(profile, 1)};
	bool compared = false;

	if (nf.nf && peer.state && nf.traffic && peer.traffic)
		compared = measure(&nf, &peer, profile->flows);
	if (peer.state)
		with->destroy(peer.state);
	nf_destroy(nf.nf);
	traffic_destroy(nf.traffic);
	traffic_destroy(peer.traffic);
	return compared;
}

bool compare_knows(const char *function)
{
	const struct peer *peer = peers;

	while (peer && strcmp(function, peer->function) != 0)
		peer = peer->next;
	return peer != NULL;
}

void compare_list(FILE *to)
{
	for (const struct peer *peer = peers, *last = NULL; peer; last = peer, peer = peer->next)
		if (!last || strcmp(last->function, peer->function) != 0)
			fprintf(to, " %s", peer->function);
	fputc('\n', to);
}

void compare_begin(void)
{
	printf("function,peer,flows,cycles_per_packet,peer_cycles_per_packet,ratio,peer_does\n");
}

bool compare_function(const char *function, const struct load *load, struct rte_mempool *spare)
{
	bool compared = true;

	for (const struct peer *peer = peers; peer; peer = peer->next) {
		if (function && strcmp(function, peer->function) != 0)
			continue;
		for (unsigned int i = 0; i < load->n_flows; i++) {
			const struct traffic_profile profile = profile_of(load, i);

			compared &= compare(peer, &profile, spare);
		}
	}
	return compared;
}
