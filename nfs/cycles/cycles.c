/*
 * cycles: measures cycles per packet of network functions beside their peers, and of chains beside
 * what follows from their functions alone; each in one run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "core/command_line.h"
#include "core/traffic.h"
#include "cycles/chains.h"
#include "cycles/measuring.h"
#include "cycles/peer.h"
#include "tests/one_core.h"

/*
 * Cycles per packet of a network function beside its peers.
 *
 * Both take turns on the same traffic, a slice of some bursts each. A slice in which another
 * process took the core is an outlier among many, so medians are reported. Only processing is
 * timed, not packet generation.
 */

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
			       .state = with->create ? with->create() : NULL,
			       .traffic = traffic_create(profile, 1)};
	struct subject nf = {.nf = nf_create(&config, NULL, 0),
			     .peer = with,
			     .state = peer.state,
			     .traffic = traffic_create(profile, 1)};
	bool compared = false;

	if (nf.nf && (peer.state || !with->create) && nf.traffic && peer.traffic)
		compared = measure(&nf, &peer, profile->flows);
	if (peer.state)
		with->destroy(peer.state);
	nf_destroy(nf.nf);
	traffic_destroy(nf.traffic);
	traffic_destroy(peer.traffic);
	return compared;
}

static bool compare_knows(const char *function)
{
	const struct peer *peer = peers;

	while (peer && strcmp(function, peer->function) != 0)
		peer = peer->next;
	return peer != NULL;
}

/* Print the names of functions that have peers. */
static void compare_list(FILE *to)
{
	for (const struct peer *peer = peers, *last = NULL; peer; last = peer, peer = peer->next)
		if (!last || strcmp(last->function, peer->function) != 0)
			fprintf(to, " %s", peer->function);
	fputc('\n', to);
}

/* Print the columns of the table. */
static void compare_begin(void)
{
	printf("function,peer,flows,cycles_per_packet,peer_cycles_per_packet,ratio,peer_does\n");
}

/* Print a row for each peer of a function, or of all if NULL, and each number of flows. */
static bool compare_function(const char *function, const struct load *load,
			     struct rte_mempool *spare)
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

static const char usage[] =
	"usage: cycles [--functions] [--chains] [--flows N]... [--packet-size BYTES] [NAME]...\n"
	"\n"
	"Measures cycles per packet on one core. Prints a table (CSV) of functions beside other\n"
	"programs for the same work, an empty line, and a table of chains beside the sum of their\n"
	"functions alone.\n"
	"\n"
	"  --functions          only functions\n"
	"  --chains             only chains\n"
	"  --flows N            with N concurrent flows; may be repeated (1000, 16000, 256000)\n"
	"  --packet-size BYTES  of a frame with its checksum (1500)\n"
	"  NAME                 only this function (NAT), or this chain, functions with commas\n"
	"                       (ACL,NAT)\n";

/* What is to be measured; nothing: all. */
struct selection {
	bool functions, chains;
	unsigned int n_functions, n_chains;
	const char *of_functions[CHAINS_MOST], *of_chains[CHAINS_MOST];
	struct load load;
};

static bool is_known(const char *function)
{
	if (compare_knows(function))
		return true;
	fprintf(stderr, "cycles: no peer of %s\nhint: one of", function);
	compare_list(stderr);
	return false;
}

/* Select by a name. */
static const char *take_name(void *state, char *name)
{
	struct selection *selection = state;
	const bool chain = strchr(name, ',') != NULL;
	unsigned int *n = chain ? &selection->n_chains : &selection->n_functions;

	if (chain ? !chains_knows(name) : !is_known(name))
		return "";
	if (*n == CHAINS_MOST)
		return "is one name too many";
	(chain ? selection->of_chains : selection->of_functions)[(*n)++] = name;
	return NULL;
}

static const char *take_flows(void *state, char *value)
{
	struct load *load = &((struct selection *)state)->load;

	if (load->n_flows == MOST_FLOWS)
		return "is one number too many";
	return command_line_number(value, 1, 1000000, &load->flows[load->n_flows++]);
}

static int read_arguments(int argc, char **argv, struct selection *selection)
{
	const struct command_option known[] = {
		{"functions", .flag = &selection->functions},
		{"chains", .flag = &selection->chains},
		{"flows", .take = take_flows},
		{"packet-size", .number = &selection->load.packet_size, .least = 64, .most = 1518},
		{0},
	};
	const struct command_line line = {"cycles", usage, known, selection, take_name};

	return command_line_read(&line, argc, argv);
}

/* What was not chosen is as usual. */
static void complete(struct selection *selection)
{
	static const uint32_t usual[] = {1000, 16000, 256000};

	if (!selection->functions && !selection->chains && selection->n_functions == 0 &&
	    selection->n_chains == 0)
		selection->functions = selection->chains = true;
	if (selection->load.packet_size == 0)
		selection->load.packet_size = 1500;
	if (selection->load.n_flows > 0)
		return;
	selection->load.n_flows = RTE_DIM(usual);
	memcpy(selection->load.flows, usual, sizeof(usual));
}

static struct rte_mempool *start(const char *name)
{
	struct rte_mempool *spare;

	if (!start_on_one_core(name, "4096"))
		return NULL;
	spare = rte_pktmbuf_pool_create("spare", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					SOCKET_ID_ANY);
	if (!spare)
		fprintf(stderr, "cycles: no memory for packets: %s\n", rte_strerror(rte_errno));
	return spare;
}

static bool measure_functions(const struct selection *selection, struct rte_mempool *spare)
{
	bool measured = true;

	if (!selection->functions && selection->n_functions == 0)
		return true;
	compare_begin();
	for (unsigned int i = 0; i < selection->n_functions; i++)
		measured &= compare_function(selection->of_functions[i], &selection->load,
					     spare);
	if (selection->n_functions == 0)
		measured &= compare_function(NULL, &selection->load, spare);
	return measured;
}

static bool measure_chains(const struct selection *selection, struct rte_mempool *spare)
{
	if (!selection->chains && selection->n_chains == 0)
		return true;
	if (selection->functions || selection->n_functions > 0)
		putchar('\n');
	return chains_measure(selection->of_chains, selection->n_chains, &selection->load,
			      spare);
}

int main(int argc, char **argv)
{
	struct selection selection = {0};
	int result = read_arguments(argc, argv, &selection);
	struct rte_mempool *spare;
	bool measured;

	if (result != COMMAND_LINE_READ)
		return result;
	complete(&selection);
	spare = start(argv[0]);
	if (!spare)
		return EXIT_FAILURE;
	measured = measure_functions(&selection, spare);
	measured &= measure_chains(&selection, spare);
	rte_eal_cleanup();
	return measured ? EXIT_SUCCESS : EXIT_FAILURE;
}
