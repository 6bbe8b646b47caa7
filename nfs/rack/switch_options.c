#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/command_line.h"
#include "rack/switch.h"

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

static bool wrong(const char *option, const char *value, const char *why)
{
	fprintf(stderr, "nf-switch: --%s: \"%s\" %s\n", option, value, why);
	return false;
}

static const char *take_link(void *state, char *value)
{
	struct switch_options *options = state;
	char *equals = strchr(value, '=');

	if (!equals || equals == value || equals[1] == 0)
		return "is not NAME=FILE";
	*equals = 0;
	for (int i = 0; i < options->n_links; i++)
		if (strcmp(options->links[i].name, value) == 0)
			return "is the name of another link";
	if (options->n_links == LINKS_MOST)
		return "is one link too many";
	options->links[options->n_links++] = (struct switch_link_option){value, equals + 1};
	return NULL;
}

static bool is_given(const char *option, const char *value)
{
	if (!value)
		fprintf(stderr, "nf-switch: --%s is needed\n", option);
	return value;
}

/* Outputs are renamed into place, which would replace a device by a file. */
static bool is_replaceable(const char *option, const char *path)
{
	struct stat found;

	if (!path || stat(path, &found) < 0 || S_ISREG(found.st_mode))
		return true;
	return wrong(option, path, "exists, and is not a file");
}

int switch_options_read(struct switch_options *options, int argc, char **argv)
{
	const struct command_option known[] = {
		{"spec", .text = &options->spec},
		{"entries", .text = &options->entries},
		{"names", .text = &options->names},
		{"in", .text = &options->in},
		{"out", .text = &options->out},
		{"link", .take = take_link},
		{"report", .text = &options->report},
		{"in-flight", .number = &options->in_flight, .least = 1,
		 .most = SWITCH_MOST_IN_FLIGHT},
		{"memory-mb", .number = &options->memory_mb, .least = 1, .most = 1 << 20},
		{"check", .flag = &options->check},
		{"control", .flag = &options->control},
		{"rules", .text = &options->rules},
		{0},
	};
	const struct command_line line = {"nf-switch", help, known, options};
	bool good = true;
	int result;

	*options = (struct switch_options){.memory_mb = 1024, .in_flight = 1};
	result = command_line_read(&line, argc, argv);
	if (result != COMMAND_LINE_READ)
		return result;
	if (options->rules && (options->spec || options->check || options->n_links == LINKS_MOST))
		good = wrong("rules", options->rules,
			     "goes without a program, and at most 63 links");
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
	return good ? COMMAND_LINE_READ : 2;
}
