#include <stdio.h>
#include <string.h>

#include "core/command_line.h"
#include "rack/switch_bench.h"

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

static const char *take_program(void *state, char *value)
{
	struct bench_options *options = state;
	char *comma = strchr(value, ',');

	if (!comma)
		return "is not SPEC,ENTRIES";
	if (options->n_programs == BENCH_MOST_PROGRAMS)
		return "is one program too many";
	*comma = 0;
	options->programs[options->n_programs++] = (struct bench_program){value, comma + 1};
	return NULL;
}

int bench_options_read(struct bench_options *options, int argc, char **argv)
{
	const struct command_option known[] = {
		{"in", .needed = true, .text = &options->in},
		{"program", .take = take_program},
		{"links", .number = &options->links, .least = 1, .most = BENCH_MOST_LINKS},
		{"in-flight", .number = &options->in_flight, .least = 1,
		 .most = BENCH_MOST_IN_FLIGHT},
		{"rounds", .number = &options->rounds, .least = 1, .most = BENCH_MOST_ROUNDS},
		{0},
	};
	const struct command_line line = {"nf-switch-bench", help, known, options};
	int result;

	*options = (struct bench_options){
		.links = 1, .in_flight = BENCH_MOST_IN_FLIGHT, .rounds = 2001};
	result = command_line_read(&line, argc, argv);
	if (result != COMMAND_LINE_READ || options->n_programs > 1)
		return result;
	fprintf(stderr, "nf-switch-bench: two programs are needed\n"
			"hint: nf-switch-bench --help lists the options\n");
	return 2;
}
