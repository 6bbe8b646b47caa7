/*
 * cycles: measures cycles per packet of each network function beside its peers, in one run.
 *
 * Both take turns on the same traffic, a slice of some bursts each. A slice in which another
 * process took the core is an outlier among many, so medians are reported. Only processing is
 * timed, not packet generation.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "accelerators/accelerator.h"
#include "core/nf.h"
#include "core/traffic.h"
#include "cycles/peer.h"

#define SLICES 301
#define MOST_BURSTS 64 /* per slice */
#define SLICE_MS 1     /* longest slice: slow functions have fewer bursts in one */
#define WARM_MS 1000
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
	struct nf *nf; /* NULL for a peer */
	const struct peer *peer;
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
		uint64_t begin = rte_rdtsc();

		if (one->nf) {
			one->nf->now_us += 10;
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

static int by_size(const void *a, const void *b)
{
	const double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

static double median(double *values, unsigned int n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
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
static int compare_work(struct subject *nf, struct subject *peer)
{
	nf->sent = nf->sent_bytes = peer->sent = peer->sent_bytes = 0;
	slice(nf, ALIKE_BURSTS);
	slice(peer, ALIKE_BURSTS);
	if (nf->sent == peer->sent && fabs((double)nf->sent_bytes - (double)peer->sent_bytes) <
					      0.001 * (double)nf->sent_bytes)
		return EXIT_SUCCESS;
	fprintf(stderr,
		"cycles: %s sends %" PRIu64 " packets of %" PRIu64 " bytes, its peer %s %" PRIu64
		" of %" PRIu64 "\n",
		nf->nf->kind->name, nf->sent, nf->sent_bytes, peer->peer->name, peer->sent,
		peer->sent_bytes);
	return EXIT_FAILURE;
}

/* The number of bursts in a slice of either. */
static int bursts_of_slice(struct subject *nf, struct subject *peer)
{
	const double room = (double)rte_get_tsc_hz() / 1000 * SLICE_MS / NF_BURST;
	const double bursts = room / RTE_MAX(slice(nf, 8), slice(peer, 8));

	return (int)RTE_MIN(RTE_MAX(bursts, 1.0), (double)MOST_BURSTS);
}

static int measure(struct subject *nf, struct subject *peer, uint32_t flows)
{
	double ratios[SLICES];
	int bursts;

	if (compare_work(nf, peer) != EXIT_SUCCESS)
		return EXIT_FAILURE;
	warm(nf, flows);
	warm(peer, flows);
	bursts = bursts_of_slice(nf, peer);
	for (int i = 0; i < SLICES; i++) {
		nf->slices[i] = slice(nf, bursts);
		peer->slices[i] = slice(peer, bursts);
		ratios[i] = nf->slices[i] / peer->slices[i];
	}
	printf("%s,%s,%u,%.1f,%.1f,%.3f,\"%s\"\n", nf->nf->kind->name, peer->peer->name, flows,
	       median(nf->slices, SLICES), median(peer->slices, SLICES), median(ratios, SLICES),
	       peer->peer->does);
	fflush(stdout);
	return EXIT_SUCCESS;
}

/* Run to completion with software engines served on the same core, as in its peers. */
static struct nf_config config_of(const char *function, struct rte_mempool *spare)
{
	static const char *const engines[ACCELERATOR_KINDS] = {"hyperscan", "deflate"};
	static struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct nf_config config = {
		.name = function, .spare = spare, .execution = NF_RUN_TO_COMPLETION};

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!accelerators[kind])
			accelerators[kind] = accelerator_create_by(engines[kind]);
		config.accelerators[kind] = accelerators[kind];
	}
	return config;
}

static int compare(const struct peer *with, const struct traffic_profile *profile,
		   struct rte_mempool *spare)
{
	const struct nf_config config = config_of(with->function, spare);
	struct subject nf = {.nf = nf_create(&config, NULL, 0),
			     .traffic = traffic_create(profile, 1)};
	struct subject peer = {.peer = with,
			       .state = with->create(profile->flows),
			       .traffic = traffic_create(profile, 1)};
	int result = EXIT_FAILURE;

	if (nf.nf && peer.state && nf.traffic && peer.traffic)
		result = measure(&nf, &peer, profile->flows);
	if (peer.state)
		with->destroy(peer.state);
	nf_destroy(nf.nf);
	traffic_destroy(nf.traffic);
	traffic_destroy(peer.traffic);
	return result;
}

static int start_eal(const char *name)
{
	char *arguments[] = {(char *)(uintptr_t)name,
			     "-l",
			     "0",
			     "--no-pci",
			     "--no-huge",
			     "-m",
			     "2048",
			     "--no-telemetry",
			     "--no-shconf",
			     "--log-level",
			     "lib.eal:error"};

	if (rte_eal_init(RTE_DIM(arguments), arguments) >= 0)
		return 0;
	fprintf(stderr, "cycles: cannot start EAL: %s\n", rte_strerror(rte_errno));
	return -1;
}

static bool is_known(const char *function)
{
	const struct peer *peer = peers, *last = NULL;

	while (peer && strcmp(function, peer->function) != 0)
		peer = peer->next;
	if (peer)
		return true;
	fprintf(stderr, "cycles: no peer of %s\nhint: one of", function);
	for (peer = peers; peer; last = peer, peer = peer->next)
		if (!last || strcmp(last->function, peer->function) != 0)
			fprintf(stderr, " %s", peer->function);
	fputc('\n', stderr);
	return false;
}

int main(int argc, char **argv)
{
	static const uint32_t flows[] = {1000, 16000, 256000};
	struct traffic_profile profile = {.packet_size = 1500, .mtbr = 600};
	struct rte_mempool *spare;
	int result = EXIT_SUCCESS;

	if (argc > 1 && !is_known(argv[1]))
		return 2;
	if (start_eal(argv[0]) < 0)
		return EXIT_FAILURE;
	spare = rte_pktmbuf_pool_create("spare", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					SOCKET_ID_ANY);
	if (!spare)
		return EXIT_FAILURE;
	printf("function,peer,flows,cycles_per_packet,peer_cycles_per_packet,ratio,peer_does\n");
	for (const struct peer *peer = peers; peer; peer = peer->next) {
		if (argc > 1 && strcmp(argv[1], peer->function) != 0)
			continue;
		for (unsigned int i = 0; i < RTE_DIM(flows); i++) {
			profile.flows = flows[i];
			if (compare(peer, &profile, spare) != EXIT_SUCCESS)
				result = EXIT_FAILURE;
		}
	}
	rte_eal_cleanup();
	return result;
}
