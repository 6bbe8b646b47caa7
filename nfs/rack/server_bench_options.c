#include "rack/server_bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
	"Usage: nf-server-bench --chain FILE [--entry PATH,INDEX] [--flows N] [--packet-size N]\n"
	"\n"
	"Measures cycles per packet of a server's chain on one core, from the label that comes to\n"
	"the label that leaves, beside a loop written by hand over the same functions; prints a\n"
	"table (CSV). Functions behind the entry must follow each other without branches.\n"
	"\n"
	"  --chain FILE         the chain, see nf-server\n"
	"  --entry PATH,INDEX   where packets enter (the first entry of the file)\n"
	"  --flows N            concurrent flows (1000)\n"
	"  --packet-size N      bytes of a frame with its checksum, without label (1500)\n";

enum { CHAIN = 256, ENTRY, FLOWS, SIZE, HELP };

static bool read_number(const char *option, unsigned long most, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(optarg, &end, 10);
	if (isdigit((unsigned char)*optarg) && *end == '\0' && errno == 0 && *number >= 1 &&
	    *number <= most)
		return true;
	fprintf(stderr, "nf-server-bench: %s: \"%s\" is not a whole number from 1 to %lu\n", option,
		optarg, most);
	return false;
}

static bool take_option(struct bench_options *options, int option)
{
	unsigned long number;
	unsigned int path, index;
	char rest;

	switch (option) {
	case CHAIN:
		options->chain = optarg;
		return true;
	case ENTRY:
		options->chosen = true;
		if (sscanf(optarg, "%u,%u%c", &path, &index, &rest) == 2) {
			options->entry = (struct service){path, (uint8_t)index};
			return true;
		}
		fprintf(stderr, "nf-server-bench: --entry: \"%s\" is not PATH,INDEX\n", optarg);
		return false;
	case FLOWS:
		if (!read_number("--flows", 1000000, &number))
			return false;
		options->flows = (uint32_t)number;
		return true;
	case SIZE:
		if (!read_number("--packet-size", 1518, &number))
			return false;
		options->packet_size = (uint16_t)number;
		return true;
	default:
		return false;
	}
}

int bench_options_read(struct bench_options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"chain", required_argument, NULL, CHAIN},
		{"entry", required_argument, NULL, ENTRY},
		{"flows", required_argument, NULL, FLOWS},
		{"packet-size", required_argument, NULL, SIZE},
		{"help", no_argument, NULL, HELP},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct bench_options){.flows = 1000, .packet_size = 1500};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			return 0;
		}
		if (!take_option(options, option))
			return 2;
	}
	if (options->chain && optind == argc)
		return -1;
	fprintf(stderr, "nf-server-bench: --chain is needed\nhint: --help lists the options\n");
	return 2;
}
