#include "run/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/settings.h"

/* What nf-run --help prints. */

static const char help[] =
	"Usage: nf-run --nf NAME [--set KEY=VALUE ...] --in CAPTURE [--out CAPTURE] [...]\n"
	"       nf-run --chain FILE --in CAPTURE [--out CAPTURE] [...]\n"
	"       nf-run --list [--nf NAME]\n"
	"\n"
	"Gives packets to a network function, or a chain of them, and writes what comes out.\n"
	"Counters of each function are printed as one line of JSON.\n"
	"\n"
	"  --nf NAME         the network function\n"
	"  --set KEY=VALUE   a parameter of it; may be repeated\n"
	"  --chain FILE      a chain: functions, edges, cores (see the documentation)\n"
	"  --in END          packets from inside\n"
	"  --outside END     packets from outside, merged with the others by their time\n"
	"  --out END         packets that leave at the outside\n"
	"  --back END        packets that leave at the inside: replies and errors\n"
	"  --each            print the fate of every packet first, one line of JSON each;\n"
	"                    packets then pass one by one\n"
	"  --count N         end after N packets\n"
	"  --seconds S       end after S seconds\n"
	"  --memory-mb N     memory for packets and tables (2048)\n"
	"  --backend NAME    what runs the function: c (the default), or its kernel as plain C\n"
	"                    (plain), by OpenCL (opencl), by CUDA (cuda)\n"
	"  --batch N         packets that a kernel gets at once, at most 1024 (256)\n"
	"  --flush-us T      time after which a batch is closed before it is full (1000)\n"
	"  --executors N     groups of 128 threads that run the kernel, at most 64 (1)\n"
	"  --list            the network functions, or parameters and counters of one\n"
	"  --help            this text\n"
	"\n"
	"An END is a capture file (pcap; \"-\" is stdin or stdout), af_packet:INTERFACE, or ring:\n"
	"packets are generated in memory (ring:FLOWS,SIZE), and freed where they leave. The clock\n"
	"of functions is the time of captured packets, and the real one otherwise.\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; what was done is kept.\n";

#define DEFAULT_MEMORY_MB 2048
#define DEFAULT_BATCH 256
#define DEFAULT_FLUSH_US 1000
#define DEFAULT_EXECUTORS 1
#define MOST_EXECUTORS 64

/* The command line while it is read. */
struct reader {
	struct options *options;
	const char *nf, *chain;
	unsigned int n_sets, faults;
	char *sets[NF_MOST_PARAMETERS];
	bool list;
	bool of_device; /* an option that only a device has was given */
};

static void list_functions(void)
{
	for (const struct nf_kind *kind = nf_first(); kind; kind = kind->next)
		printf("%-16s %s\n", kind->name, kind->help);
}

static void list_parameters(const struct nf_kind *kind)
{
	printf("%s: %s\n", kind->name, kind->help);
	if (kind->n_parameters > 0)
		puts("\nparameters:");
	for (unsigned int i = 0; i < kind->n_parameters; i++) {
		const struct nf_parameter *parameter = &kind->parameters[i];

		if (parameter->text)
			printf("  %-16s %s (\"%s\")\n", parameter->name, parameter->help,
			       parameter->text);
		else
			printf("  %-16s %s (%.12g; %.12g to %.12g)\n", parameter->name,
			       parameter->help, parameter->default_value, parameter->low,
			       parameter->high);
	}
	puts("\ncounters:");
	for (unsigned int i = 0; i < kind->n_counters; i++)
		printf("  %-16s %s\n", kind->counters[i].name, kind->counters[i].help);
}

static const struct nf_kind *kind_of(struct reader *reader)
{
	const struct nf_kind *kind = nf_find(reader->nf);

	if (kind)
		return kind;
	reader->faults++;
	fprintf(stderr, "nf-run: --nf: %s: unknown network function\nhint: one of", reader->nf);
	for (kind = nf_first(); kind; kind = kind->next)
		fprintf(stderr, " %s", kind->name);
	fputc('\n', stderr);
	return NULL;
}

static bool positive(struct reader *reader, const char *option, const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end != text && *end == '\0' && *value > 0 && *value < 1e15)
		return true;
	fprintf(stderr, "nf-run: %s: \"%s\" is not a number above 0\n", option, text);
	reader->faults++;
	return false;
}

/* The chain of one function. */
static void make_single(struct reader *reader)
{
	struct chain_spec *spec = &reader->options->chain.spec;
	const struct nf_kind *kind = kind_of(reader);
	char why[256], names[512];

	if (!kind)
		return;
	*spec = (struct chain_spec){.n_functions = 1, .n_cores = 1};
	spec->functions[0].kind = kind;
	snprintf(spec->functions[0].name, sizeof(spec->functions[0].name), "%s", kind->name);
	for (unsigned int i = 0; i < reader->n_sets; i++) {
		if (setting_add(&spec->functions[0], reader->sets[i], why, sizeof(why)))
			continue;
		fprintf(stderr, "nf-run: --set: %s\n", why);
		if (strstr(why, "has no parameter")) {
			setting_names(kind, names, sizeof(names));
			fprintf(stderr, "hint: one of %s\n", names);
		}
		reader->faults++;
	}
}

static void require(struct reader *reader, bool met, const char *what)
{
	if (met)
		return;
	fprintf(stderr, "nf-run: %s\n", what);
	reader->faults++;
}

enum {
	MEMORY = 256,
	NF,
	SET,
	CHAIN,
	IN,
	OUTSIDE,
	OUT,
	BACK,
	EACH,
	COUNT,
	SECONDS,
	BACKEND,
	BATCH,
	FLUSH,
	EXECUTORS,
	LIST,
	HELP,
};

static int next_option(int argc, char **argv)
{
	static const struct option known[] = {
		{"nf", required_argument, NULL, NF},
		{"set", required_argument, NULL, SET},
		{"chain", required_argument, NULL, CHAIN},
		{"in", required_argument, NULL, IN},
		{"outside", required_argument, NULL, OUTSIDE},
		{"out", required_argument, NULL, OUT},
		{"back", required_argument, NULL, BACK},
		{"each", no_argument, NULL, EACH},
		{"count", required_argument, NULL, COUNT},
		{"seconds", required_argument, NULL, SECONDS},
		{"memory-mb", required_argument, NULL, MEMORY},
		{"backend", required_argument, NULL, BACKEND},
		{"batch", required_argument, NULL, BATCH},
		{"flush-us", required_argument, NULL, FLUSH},
		{"executors", required_argument, NULL, EXECUTORS},
		{"list", no_argument, NULL, LIST},
		{"help", no_argument, NULL, HELP},
		{NULL, 0, NULL, 0},
	};

	return getopt_long(argc, argv, "", known, NULL);
}

/* A whole number from 1 to `most`; the value as it was after printing what is wrong. */
static unsigned int whole(struct reader *reader, const char *option, unsigned int most,
			  unsigned int value)
{
	char *end;
	const double read = strtod(optarg, &end);

	if (end != optarg && *end == '\0' && read >= 1 && read <= most &&
	    read == (unsigned int)read)
		return (unsigned int)read;
	fprintf(stderr, "nf-run: %s: \"%s\" is no whole number from 1 to %u\n", option, optarg,
		most);
	reader->faults++;
	return value;
}

static void take_device_option(struct reader *reader, int option)
{
	struct device_options *device = &reader->options->device;
	double value;

	if (option == BACKEND)
		device->backend = optarg;
	else if (option == BATCH)
		device->batch = whole(reader, "--batch", DEVICE_MOST_BATCH, device->batch);
	else if (option == EXECUTORS)
		device->executors = whole(reader, "--executors", MOST_EXECUTORS, device->executors);
	else if (positive(reader, "--flush-us", optarg, &value))
		device->flush_us = value;
	reader->of_device |= option != BACKEND;
}

static void take_option(struct reader *reader, int option)
{
	struct options *options = reader->options;
	double value;

	if (option == NF)
		reader->nf = optarg;
	else if (option == CHAIN)
		reader->chain = optarg;
	else if (option == IN)
		options->in = optarg;
	else if (option == OUTSIDE)
		options->outside = optarg;
	else if (option == OUT)
		options->out = optarg;
	else if (option == BACK)
		options->back = optarg;
	else if (option == EACH)
		options->each = true;
	else if (option == LIST)
		reader->list = true;
	else if (option == COUNT && positive(reader, "--count", optarg, &value))
		options->count = (uint64_t)value;
	else if (option == SECONDS && positive(reader, "--seconds", optarg, &value))
		options->seconds = value;
	else if (option == MEMORY && positive(reader, "--memory-mb", optarg, &value))
		options->memory_mb = (unsigned int)value;
	else if (option >= BACKEND && option <= EXECUTORS)
		take_device_option(reader, option);
	else if (option == SET && reader->n_sets < NF_MOST_PARAMETERS)
		reader->sets[reader->n_sets++] = optarg;
	else if (option == SET || option == '?')
		reader->faults++;
}

static enum options_result list(struct reader *reader)
{
	const struct nf_kind *kind;

	if (!reader->nf) {
		list_functions();
		return OPTIONS_DONE;
	}
	kind = kind_of(reader);
	if (!kind)
		return OPTIONS_WRONG;
	list_parameters(kind);
	return OPTIONS_DONE;
}

static bool same(const char *one, const char *other)
{
	return one && other && strcmp(one, "ring") != 0 && strcmp(one, other) == 0;
}

static bool is_capture(const char *text)
{
	return !text || (strncmp(text, "ring", 4) != 0 && strncmp(text, "af_packet:", 10) != 0);
}

static void check(struct reader *reader, int argc)
{
	const struct options *options = reader->options;

	require(reader, optind == argc, "arguments are options: see --help");
	require(reader, !reader->nf != !reader->chain, "either --nf or --chain is needed");
	require(reader, !reader->chain || reader->n_sets == 0,
		"--set goes with --nf; a chain has its settings in the file");
	require(reader, !options->device.backend || !reader->chain,
		"--backend goes with --nf; chains run in C");
	require(reader, options->in || options->outside, "--in is needed");
	require(reader, !same(options->out, options->back),
		"--out and --back cannot be the same file");
	require(reader, !same(options->in, options->out) && !same(options->in, options->back) &&
				!same(options->outside, options->out),
		"a capture cannot be read and written at once");
	require(reader, !options->each || is_capture(options->in ? options->in : options->outside),
		"--each needs a capture: packets without end have no last fate");
	require(reader,
		!(options->out && strcmp(options->out, "-") == 0) &&
			!(options->back && strcmp(options->back, "-") == 0),
		"counters are printed on stdout: captures go to files");
}

enum options_result options_read(struct options *options, int argc, char **argv)
{
	struct reader reader = {.options = options};
	int option;

	*options = (struct options){
		.memory_mb = DEFAULT_MEMORY_MB,
		.device = {.batch = DEFAULT_BATCH,
			   .flush_us = DEFAULT_FLUSH_US,
			   .executors = DEFAULT_EXECUTORS},
	};
	while ((option = next_option(argc, argv)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			return OPTIONS_DONE;
		}
		take_option(&reader, option);
	}
	if (reader.list && reader.faults == 0)
		return list(&reader);
	check(&reader, argc);
	reader.faults += device_options_check(&options->device, reader.nf, reader.of_device);
	if (reader.nf && !reader.chain)
		make_single(&reader);
	if (reader.chain && !reader.nf && !chain_file_read(&options->chain, reader.chain)) {
		reader.faults++;
		fprintf(stderr, "hint: a chain file has lines such as \"acl: ACL filters=100\" and "
				"\"acl -> nat\"; see nf-run --list\n");
	}
	if (reader.faults == 0)
		return OPTIONS_RUN;
	return OPTIONS_WRONG;
}
