#include "rack/server_options.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/command_line.h"

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

/* Put the functions of a chain on as many cores as there may be; 0: as many as it names. */
static void place(struct chain_spec *spec, unsigned int cores)
{
	if (cores == 0 || spec->n_cores <= cores)
		return;
	spec->n_cores = 1;
	for (unsigned int i = 0; i < spec->n_functions; i++)
		spec->functions[i].core = 0;
}

/* A processor for each core of the chain; false after printing why not. */
static bool read_pins(struct server_options *options, const char *list)
{
	const unsigned int n_cores = options->chain.spec.n_cores;
	const char *rest = list;
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
		return true;
	fprintf(stderr, "nf-server: --pin: \"%s\" is not a list of %u processors\nhint: %s\n", list,
		n_cores, n_cores == 1 ? "such as 2" : "such as 2,3");
	return false;
}

int server_options_read(struct server_options *options, int argc, char **argv)
{
	const char *chain = NULL, *pins = NULL;
	unsigned int cores = 0;
	const struct command_option known[] = {
		{"chain", .needed = true, .text = &chain},
		{"link", .needed = true, .text = &options->link},
		{"report", .needed = true, .text = &options->report},
		{"cores", .number = &cores, .least = 1, .most = CHAIN_MOST_CORES},
		{"pin", .text = &pins},
		{"memory-mb", .number = &options->memory_mb, .least = 1, .most = 1 << 20},
		{"control", .flag = &options->control},
		{0},
	};
	const struct command_line line = {"nf-server", help, known};
	int result;

	*options = (struct server_options){.memory_mb = DEFAULT_MEMORY_MB};
	result = command_line_read(&line, argc, argv);
	if (result != COMMAND_LINE_READ)
		return result;
	if (!chain_file_read(&options->chain, chain)) {
		fprintf(stderr, "hint: a chain file has lines such as \"acl: ACL filters=100\" and "
				"\"nsh 5 254 -> acl\"; see nf-run --list\n");
		return 2;
	}
	place(&options->chain.spec, cores);
	return pins && !read_pins(options, pins) ? 2 : COMMAND_LINE_READ;
}
