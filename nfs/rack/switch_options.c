#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "rack/switch.h"
#include "rack/text.h"

static const char help[] =
	"Usage: nf-switch --spec FILE --in CAPTURE --out CAPTURE [--entries FILE] [...]\n"
	"\n"
	"Runs a program of DPDK's SWX pipeline, an emulated switch, on the packets of a capture\n"
	"and those that other processes send over links. Port 0 is the world, ports 1, 2, ...\n"
	"are the links in the order given, the last port drops.\n"
	"\n"
	"  --spec FILE        the program\n"
	"  --entries FILE     entries of its tables\n"
	"  --names FILE       names of functions and reasons, for the report\n"
	"  --in CAPTURE       packets from the world (pcap), or af_packet:INTERFACE\n"
	"  --out CAPTURE      packets to the world, or af_packet:INTERFACE\n"
	"  --link NAME=FILE   a link to another process; may be repeated\n"
	"  --rules FILE       in place of --spec: a link to a process that runs rules, which has "
	"the\n"
	"                     port of a frame as it comes in, and answers with that as it leaves\n"
	"  --report FILE      counters, as JSON; default: stdout\n"
	"  --in-flight N      packets in the pipeline at a time, 1 to 16 (1); more than one may\n"
	"                     overtake each other\n"
	"  --memory-mb N      memory for packets and tables (1024)\n"
	"  --check            read program and entries, and end\n"
	"  --control          stay up, and take orders from stdin (rack/control.h)\n"
	"  --help             this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; what was done is kept.\n";

enum {
	SPEC,
	ENTRIES,
	NAMES,
	IN,
	OUT,
	LINK,
	REPORT,
	IN_FLIGHT,
	MEMORY_MB,
	CHECK,
	CONTROL,
	RULES,
	HELP,
};

static const struct option known[] = {
	{"spec", required_argument, NULL, SPEC},
	{"entries", required_argument, NULL, ENTRIES},
	{"names", required_argument, NULL, NAMES},
	{"in", required_argument, NULL, IN},
	{"out", required_argument, NULL, OUT},
	{"link", required_argument, NULL, LINK},
	{"report", required_argument, NULL, REPORT},
	{"in-flight", required_argument, NULL, IN_FLIGHT},
	{"memory-mb", required_argument, NULL, MEMORY_MB},
	{"check", no_argument, NULL, CHECK},
	{"control", no_argument, NULL, CONTROL},
	{"rules", required_argument, NULL, RULES},
	{"help", no_argument, NULL, HELP},
	{0},
};

static bool wrong(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "nf-switch: --%s %s: expected %s\n", option, value, wanted);
	return false;
}

static bool read_link(struct switch_options *options, char *value)
{
	char *equals = strchr(value, '=');

	if (!equals || equals == value || equals[1] == 0)
		return wrong("link", value, "NAME=FILE");
	*equals = 0;
	for (int i = 0; i < options->n_links; i++)
		if (strcmp(options->links[i].name, value) == 0)
			return wrong("link", value, "a name that no other link has");
	if (options->n_links == LINKS_MOST)
		return wrong("link", value, "at most 64 links");
	options->links[options->n_links++] = (struct switch_link_option){value, equals + 1};
	return true;
}

static bool read_option(struct switch_options *options, int which, char *value)
{
	const char **texts[] = {
		[SPEC] = &options->spec,   [ENTRIES] = &options->entries,
		[NAMES] = &options->names, [IN] = &options->in,
		[OUT] = &options->out,     [REPORT] = &options->report,
		[RULES] = &options->rules,
	};

	switch (which) {
	case LINK:
		return read_link(options, value);
	case IN_FLIGHT:
		return option_number("nf-switch", "in-flight", value, SWITCH_MOST_IN_FLIGHT,
				     &options->in_flight);
	case MEMORY_MB:
		return option_number("nf-switch", "memory-mb", value, 1 << 20, &options->memory_mb);
	case CHECK:
		options->check = true;
		return true;
	case CONTROL:
		options->control = true;
		return true;
	default:
		*texts[which] = value;
		return true;
	}
}

static bool is_given(const char *option, const char *value)
{
	if (!value)
		fprintf(stderr, "nf-switch: --%s is missing\n", option);
	return value;
}

/* Outputs are renamed into place, which would replace a device by a file. */
static bool is_replaceable(const char *option, const char *path)
{
	struct stat found;

	if (!path || stat(path, &found) < 0 || S_ISREG(found.st_mode))
		return true;
	fprintf(stderr, "nf-switch: --%s %s: exists, and is not a file\n", option, path);
	return false;
}

enum switch_options_next switch_options_read(struct switch_options *options, int argc, char **argv)
{
	bool good = true;
	int which;

	*options = (struct switch_options){.memory_mb = 1024, .in_flight = 1};
	while ((which = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (which == HELP) {
			fputs(help, stdout);
			return SWITCH_OPTIONS_DONE;
		}
		good &= which < HELP && read_option(options, which, optarg);
	}
	if (optind < argc) {
		fprintf(stderr, "nf-switch: %s: is no option\n", argv[optind]);
		good = false;
	}
	if (options->rules && (options->spec || options->check || options->n_links == LINKS_MOST))
		good = wrong("rules", options->rules, "no program, and at most 63 links");
	else if (options->rules)
		options->links[options->n_links++] =
			(struct switch_link_option){"rules", options->rules};
	else
		good &= is_given("spec", options->spec);
	good &= options->check || is_given("in", options->in);
	good &= options->check || is_given("out", options->out);
	good &= is_replaceable("out", options->out);
	good &= is_replaceable("report", options->report);
	if (!good)
		fputs("hint: nf-switch --help lists the options\n", stderr);
	return good ? SWITCH_OPTIONS_RUN : SWITCH_OPTIONS_WRONG;
}
