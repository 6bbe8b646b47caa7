#include "run/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/command_line.h"
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

static const char *take_set(void *state, char *value)
{
	struct reader *reader = state;

	if (reader->n_sets == NF_MOST_PARAMETERS)
		return "is more than any function has";
	reader->sets[reader->n_sets++] = value;
	return NULL;
}

/* An exit status. */
static int list(struct reader *reader)
{
	const struct nf_kind *kind;

	if (!reader->nf) {
		list_functions();
		return 0;
	}
	kind = kind_of(reader);
	if (!kind)
		return 2;
	list_parameters(kind);
	return 0;
}

static bool same(const char *one, const char *other)
{
	return one && other && strcmp(one, "ring") != 0 && strcmp(one, other) == 0;
}

static bool is_capture(const char *text)
{
	return !text || (strncmp(text, "ring", 4) != 0 && strncmp(text, "af_packet:", 10) != 0);
}

static void check(struct reader *reader)
{
	const struct options *options = reader->options;

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

int options_read(struct options *options, int argc, char **argv)
{
	struct reader reader = {.options = options};
	struct device_options *device = &options->device;
	double count = 0, flush_us = 0;
	unsigned int batch = 0, executors = 0;
	const struct command_option known[] = {
		{"nf", .text = &reader.nf},
		{"set", .take = take_set},
		{"chain", .text = &reader.chain},
		{"in", .text = &options->in},
		{"outside", .text = &options->outside},
		{"out", .text = &options->out},
		{"back", .text = &options->back},
		{"each", .flag = &options->each},
		{"count", .real = &count},
		{"seconds", .real = &options->seconds},
		{"memory-mb", .number = &options->memory_mb, .least = 1, .most = 1 << 20},
		{"backend", .text = &device->backend},
		{"batch", .number = &batch, .least = 1, .most = DEVICE_MOST_BATCH},
		{"flush-us", .real = &flush_us},
		{"executors", .number = &executors, .least = 1, .most = MOST_EXECUTORS},
		{"list", .flag = &reader.list},
		{0},
	};
	const struct command_line line = {"nf-run", help, known, &reader};
	int result;

	*options = (struct options){.memory_mb = DEFAULT_MEMORY_MB};
	result = command_line_read(&line, argc, argv);
	if (result != COMMAND_LINE_READ)
		return result;
	options->count = (uint64_t)count;
	require(&reader, (double)options->count == count, "--count is a whole number");
	device->batch = batch ? batch : DEFAULT_BATCH;
	device->flush_us = flush_us > 0 ? flush_us : DEFAULT_FLUSH_US;
	device->executors = executors ? executors : DEFAULT_EXECUTORS;
	if (reader.list)
		return list(&reader);
	check(&reader);
	reader.faults +=
		device_options_check(device, reader.nf, batch || flush_us > 0 || executors);
	if (reader.nf && !reader.chain)
		make_single(&reader);
	if (reader.chain && !reader.nf && !chain_file_read(&options->chain, reader.chain)) {
		reader.faults++;
		fprintf(stderr, "hint: a chain file has lines such as \"acl: ACL filters=100\" and "
				"\"acl -> nat\"; see nf-run --list\n");
	}
	return reader.faults > 0 ? 2 : COMMAND_LINE_READ;
}
