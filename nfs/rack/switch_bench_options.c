#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "rack/switch_bench.h"
#include "rack/text.h"

static const char help[] =
	"Usage: nf-switch-bench --in CAPTURE --program SPEC,ENTRIES --program SPEC,ENTRIES [...]\n"
	"\n"
	"Measures cycles per packet of programs of the switch beside each other, and prints a\n"
	"table (CSV); ratios are those to the last program. All programs must do the same:\n"
	"each packet is sent through all of them first, and compared.\n"
	"\n"
	"  --in CAPTURE            packets (pcap): those with NSH come from the first link,\n"
	"                          others from the world\n"
	"  --program SPEC,ENTRIES  a program and its entries; 2 to 4 times\n"
	"  --links N               links of the switch (1)\n"
	"  --in-flight N           packets in the pipeline at a time, 1 to 16 (16)\n"
	"  --rounds N              rounds of 256 packets per program (2001)\n"
	"  --help                  this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, or the programs do not do the same, 2 bad input.\n";

#define NAME "nf-switch-bench"

enum { IN = 256, PROGRAM, LINKS, IN_FLIGHT, ROUNDS, HELP };

static bool read_program(struct bench_options *options)
{
	char *comma = strchr(optarg, ',');

	if (!comma || options->n_programs == BENCH_MOST_PROGRAMS) {
		fprintf(stderr,
			"nf-switch-bench: --program %s: expected SPEC,ENTRIES, at most %d times\n",
			optarg, BENCH_MOST_PROGRAMS);
		return false;
	}
	*comma = 0;
	options->programs[options->n_programs++] = (struct bench_program){optarg, comma + 1};
	return true;
}

static bool take_option(struct bench_options *options, int option)
{
	switch (option) {
	case IN:
		options->in = optarg;
		return true;
	case PROGRAM:
		return read_program(options);
	case LINKS:
		return option_number(NAME, "links", optarg, BENCH_MOST_LINKS, &options->links);
	case IN_FLIGHT:
		return option_number(NAME, "in-flight", optarg, BENCH_MOST_IN_FLIGHT,
				     &options->in_flight);
	case ROUNDS:
		return option_number(NAME, "rounds", optarg, BENCH_MOST_ROUNDS, &options->rounds);
	default:
		return false;
	}
}

int bench_options_read(struct bench_options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"in", required_argument, NULL, IN},
		{"program", required_argument, NULL, PROGRAM},
		{"links", required_argument, NULL, LINKS},
		{"in-flight", required_argument, NULL, IN_FLIGHT},
		{"rounds", required_argument, NULL, ROUNDS},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int option;

	*options = (struct bench_options){
		.links = 1, .in_flight = BENCH_MOST_IN_FLIGHT, .rounds = 2001};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			return 0;
		}
		if (!take_option(options, option))
			return 2;
	}
	if (options->in && options->n_programs > 1 && optind == argc)
		return -1;
	fprintf(stderr, "nf-switch-bench: --in and two programs are needed\n"
			"hint: --help lists the options\n");
	return 2;
}
