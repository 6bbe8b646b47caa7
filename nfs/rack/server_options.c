#include "rack/server_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_MEMORY_MB 2048

static const char help[] =
	"Usage: nf-server --chain FILE --link FILE --report FILE [--cores N] [--pin LIST]\n"
	"\n"
	"Plays a server of a rack: packets come from a switch, or from the server's SmartNIC, by\n"
	"a link; each enters the chain where its network service header says, and leaves by the\n"
	"same link with the header of the function that is next, or without one.\n"
	"\n"
	"  --chain FILE    functions, edges, entries, cores (see nf-run)\n"
	"  --link FILE     the link, of which this is side B\n"
	"  --report FILE   what was done, as JSON, when the link ends\n"
	"  --cores N       at most so many threads: if the chain names more cores, all run on one\n"
	"                  (as many as it names)\n"
	"  --pin LIST      processors for them, such as 2,3 (none: where the system puts them)\n"
	"  --memory-mb N   memory for packets and tables (2048)\n"
	"  --control       stay up, and take orders from stdin (rack/control.h)\n"
	"  --help          this text\n"
	"\n"
	"The clock of functions is the time at which packets came to the switch.\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; what was done is reported.\n";

/* The command line while it is read. */
struct reader {
	struct server_options *options;
	const char *chain, *pins;
	unsigned long cores; /* 0: as many as the chain names */
	unsigned int faults;
};

enum { CHAIN = 256, LINK, REPORT, CORES, PIN, MEMORY, CONTROL, HELP };

static int next_option(int argc, char **argv)
{
	static const struct option known[] = {
		{"chain", required_argument, NULL, CHAIN},
		{"link", required_argument, NULL, LINK},
		{"report", required_argument, NULL, REPORT},
		{"cores", required_argument, NULL, CORES},
		{"pin", required_argument, NULL, PIN},
		{"memory-mb", required_argument, NULL, MEMORY},
		{"control", no_argument, NULL, CONTROL},
		{"help", no_argument, NULL, HELP},
		{NULL, 0, NULL, 0},
	};

	return getopt_long(argc, argv, "", known, NULL);
}

static unsigned long whole(struct reader *reader, const char *option, unsigned long most)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(optarg, &end, 10);
	if (isdigit((unsigned char)*optarg) && *end == '\0' && errno == 0 && value > 0 &&
	    value <= most)
		return value;
	fprintf(stderr, "nf-server: %s: \"%s\" is not a whole number from 1 to %lu\n", option,
		optarg, most);
	reader->faults++;
	return 1;
}

static void take_option(struct reader *reader, int option)
{
	struct server_options *options = reader->options;

	if (option == CHAIN)
		reader->chain = optarg;
	else if (option == LINK)
		options->link = optarg;
	else if (option == REPORT)
		options->report = optarg;
	else if (option == CORES)
		reader->cores = whole(reader, "--cores", CHAIN_MOST_CORES);
	else if (option == PIN)
		reader->pins = optarg;
	else if (option == MEMORY)
		options->memory_mb = (unsigned int)whole(reader, "--memory-mb", 1 << 20);
	else if (option == CONTROL)
		options->control = true;
	else
		reader->faults++;
}

static void require(struct reader *reader, bool met, const char *what)
{
	if (met)
		return;
	fprintf(stderr, "nf-server: %s\n", what);
	reader->faults++;
}

/* Put the functions on as many cores as there may be. */
static void place(struct reader *reader)
{
	struct chain_spec *spec = &reader->options->chain.spec;

	if (reader->cores == 0 || spec->n_cores <= reader->cores)
		return;
	spec->n_cores = 1;
	for (unsigned int i = 0; i < spec->n_functions; i++)
		spec->functions[i].core = 0;
}

/* A processor for each core of the chain. */
static void read_pins(struct reader *reader)
{
	struct server_options *options = reader->options;
	const unsigned int n_cores = options->chain.spec.n_cores;
	const char *rest = reader->pins;
	unsigned int n = 0;

	while (rest && n < n_cores) {
		char *end;
		const unsigned long processor = strtoul(rest, &end, 10);

		if (!isdigit((unsigned char)*rest) || (*end != ',' && *end != '\0') ||
		    processor >= CPU_SETSIZE)
			break;
		options->pins[n++] = (int)processor;
		rest = *end ? end + 1 : NULL;
	}
	options->pinned = true;
	if (!rest && n == n_cores)
		return;
	fprintf(stderr, "nf-server: --pin: \"%s\" is not a list of %u processors\nhint: %s\n",
		reader->pins, n_cores, n_cores == 1 ? "such as 2" : "such as 2,3");
	reader->faults++;
}

enum server_options_result server_options_read(struct server_options *options, int argc,
					       char **argv)
{
	struct reader reader = {.options = options};
	int option;

	*options = (struct server_options){.memory_mb = DEFAULT_MEMORY_MB};
	while ((option = next_option(argc, argv)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			return SERVER_DONE;
		}
		take_option(&reader, option);
	}
	require(&reader, optind == argc, "arguments are options: see --help");
	require(&reader, reader.chain, "--chain is needed");
	require(&reader, options->link, "--link is needed");
	require(&reader, options->report, "--report is needed");
	if (reader.chain && !chain_file_read(&options->chain, reader.chain)) {
		fprintf(stderr, "hint: a chain file has lines such as \"acl: ACL filters=100\" and "
				"\"nsh 5 254 -> acl\"; see nf-run --list\n");
		reader.faults++;
	} else if (reader.chain) {
		place(&reader);
		if (reader.pins)
			read_pins(&reader);
	}
	return reader.faults == 0 ? SERVER_RUN : SERVER_WRONG;
}
