/*
 * cycles: measures cycles per packet of network functions beside their peers, and of chains beside
 * what follows from their functions alone; each in one run.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "cycles/chains.h"
#include "cycles/compare.h"

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

/* Select by a name; false after printing why it cannot be. */
static bool select_name(struct selection *selection, const char *name)
{
	const bool chain = strchr(name, ',') != NULL;
	unsigned int *n = chain ? &selection->n_chains : &selection->n_functions;

	if (chain ? !chains_knows(name) : !is_known(name))
		return false;
	if (*n == CHAINS_MOST) {
		fprintf(stderr, "cycles: more than %d names\n", CHAINS_MOST);
		return false;
	}
	(chain ? selection->of_chains : selection->of_functions)[(*n)++] = name;
	return true;
}

/* Read the number of an option; false after printing what is wrong. */
static bool read_number(const char *option, const char *text, unsigned long least,
			unsigned long most, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = text ? strtoul(text, &end, 10) : 0;
	if (text && isdigit((unsigned char)*text) && *end == '\0' && errno == 0 &&
	    *number >= least && *number <= most)
		return true;
	fprintf(stderr, "cycles: %s %s\nhint: a number from %lu to %lu\n", option,
		text ? text : "has no value", least, most);
	return false;
}

/* Read an option with a number; false after printing what is wrong. */
static bool read_load(struct load *load, const char *option, const char *text)
{
	unsigned long number;

	if (strcmp(option, "--packet-size") == 0) {
		if (!read_number(option, text, 64, 1518, &number))
			return false;
		load->packet_size = (uint16_t)number;
	} else {
		if (!read_number(option, text, 1, 1000000, &number))
			return false;
		if (load->n_flows == MOST_FLOWS) {
			fprintf(stderr, "cycles: more than %d times --flows\n", MOST_FLOWS);
			return false;
		}
		load->flows[load->n_flows++] = (uint32_t)number;
	}
	return true;
}

static bool read_arguments(int argc, char **argv, struct selection *selection)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--functions") == 0) {
			selection->functions = true;
		} else if (strcmp(argv[i], "--chains") == 0) {
			selection->chains = true;
		} else if (strcmp(argv[i], "--flows") == 0 ||
			   strcmp(argv[i], "--packet-size") == 0) {
			if (!read_load(&selection->load, argv[i], argv[i + 1]))
				return false;
			i++;
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "cycles: no option %s\nhint: --help lists them\n", argv[i]);
			return false;
		} else if (!select_name(selection, argv[i])) {
			return false;
		}
	}
	return true;
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
	char *arguments[] = {(char *)(uintptr_t)name,
			     "-l",
			     "0",
			     "--no-pci",
			     "--no-huge",
			     "-m",
			     "4096",
			     "--no-telemetry",
			     "--no-shconf",
			     "--log-level",
			     "lib.eal:error"};
	struct rte_mempool *spare;

	if (rte_eal_init(RTE_DIM(arguments), arguments) < 0) {
		fprintf(stderr, "cycles: cannot start EAL: %s\n", rte_strerror(rte_errno));
		return NULL;
	}
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
	struct rte_mempool *spare;
	bool measured;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return EXIT_SUCCESS;
	}
	if (!read_arguments(argc, argv, &selection))
		return 2;
	complete(&selection);
	spare = start(argv[0]);
	if (!spare)
		return EXIT_FAILURE;
	measured = measure_functions(&selection, spare);
	measured &= measure_chains(&selection, spare);
	rte_eal_cleanup();
	return measured ? EXIT_SUCCESS : EXIT_FAILURE;
}
