#include "testbed/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbed/names.h"

const char *const counter_source_names[] = {
	[COUNTERS_BEST] = "best",
	[COUNTERS_PERF] = "perf",
	[COUNTERS_CACHEGRIND] = "cachegrind",
	[COUNTERS_NONE] = "none",
};

static const char usage[] =
	"usage: nf-testbed [OPTIONS]\n"
	"\n"
	"Runs network functions and benches side by side on this machine and measures them.\n"
	"Serves the testbed protocol: one JSON request per line on stdin, one response per line\n"
	"on stdout.\n"
	"\n"
	"  --cores LIST             cores for workloads and accelerators, such as 0,2-5 (all)\n"
	"  --accelerators LIST      accelerators that get a core as their engine, by name, or none\n"
	"                           (regex and compression, if two cores are left for workloads)\n"
	"  --share-client-core      run all workloads in turn on one core and leave the others to\n"
	"                           accelerators: only for accelerator-bound workloads\n"
	"  --realtime               use realtime priority (SCHED_FIFO) and keep other processes\n"
	"                           off idle cores, too: for shared machines\n"
	"  --best-effort            if too few windows are undisturbed, answer from the others:\n"
	"                           with a larger error, and marked as best effort\n"
	"  --shared-machine         other machines use these hyperthreads and caches:\n"
	"                           throughput as at the fastest clock that was seen, from\n"
	"                           windows in which the cores were little slower\n"
	"  --fastest-probe CYCLES   with it: what earlier runs printed, so that the first ones\n"
	"                           know it, too\n"
	"  --window-ms MS           length of a window, at least 20 (50)\n"
	"  --windows LEAST,MOST     undisturbed windows of a run, and limit of all windows "
	"(20,600)\n"
	"  --standard-error PCT     largest standard error of each throughput (0.5)\n"
	"  --null-control MINUTES   interval of null controls; 0: none (10)\n"
	"  --counters SOURCE        perf, cachegrind, or none, which reports zeros (perf if the\n"
	"                           machine has hardware events, else cachegrind)\n"
	"  --timeout S              time limit of a response, at least 5 (60)\n"
	"  --memory MB              DPDK's heap (2048)\n"
	"  --port ADDRESS           PCI address of a card's port; twice, inside and outside: the\n"
	"                           card then forwards connections of FlowTracker (DOCA Flow)\n"
	"  --help                   print this text\n";

enum {
	CORES = 256,
	ACCELERATORS,
	SHARE_CLIENT_CORE,
	REALTIME,
	BEST_EFFORT_ANSWERS,
	SHARED_MACHINE,
	FASTEST_PROBE,
	WINDOW_MS,
	WINDOWS,
	STANDARD_ERROR,
	NULL_CONTROL,
	COUNTERS,
	TIMEOUT,
	MEMORY,
	PORT,
	HELP,
	COUNT,
	UNITS,
	PARENT,
	PAGES,
	EVENTS,
};

static const struct option long_options[] = {
	{"cores", required_argument, NULL, CORES},
	{"accelerators", required_argument, NULL, ACCELERATORS},
	{"share-client-core", no_argument, NULL, SHARE_CLIENT_CORE},
	{"realtime", no_argument, NULL, REALTIME},
	{"best-effort", no_argument, NULL, BEST_EFFORT_ANSWERS},
	{"shared-machine", no_argument, NULL, SHARED_MACHINE},
	{"fastest-probe", required_argument, NULL, FASTEST_PROBE},
	{"window-ms", required_argument, NULL, WINDOW_MS},
	{"windows", required_argument, NULL, WINDOWS},
	{"standard-error", required_argument, NULL, STANDARD_ERROR},
	{"null-control", required_argument, NULL, NULL_CONTROL},
	{"counters", required_argument, NULL, COUNTERS},
	{"timeout", required_argument, NULL, TIMEOUT},
	{"memory", required_argument, NULL, MEMORY},
	{"port", required_argument, NULL, PORT},
	{"help", no_argument, NULL, HELP},
	/* internal: the testbed starts itself with these to count events */
	{"count", required_argument, NULL, COUNT},
	{"units", required_argument, NULL, UNITS},
	{"parent", required_argument, NULL, PARENT},
	{"pages", no_argument, NULL, PAGES},
	{"events", no_argument, NULL, EVENTS},
	{0},
};

/* A decimal number in a range at the start of `text`; `rest` points behind it. */
static bool parse_unsigned(const char *text, unsigned long low, unsigned long high,
			   unsigned long *value, char **rest)
{
	errno = 0;
	*value = strtoul(text, rest, 10);
	return *rest != text && *text != '-' && errno == 0 && *value >= low && *value <= high;
}

static bool set_unsigned(unsigned int *of, const char *text, unsigned long low, unsigned long high)
{
	unsigned long value;
	char *rest;

	if (!parse_unsigned(text, low, high, &value, &rest) || *rest)
		return false;
	*of = (unsigned int)value;
	return true;
}

static bool set_windows(struct run_limits *limits, const char *text)
{
	unsigned long least, most;
	char *rest;

	if (!parse_unsigned(text, LEAST_ROUNDS, 1000000, &least, &rest) || *rest != ',' ||
	    !parse_unsigned(rest + 1, least, 1000000, &most, &rest) || *rest)
		return false;
	limits->least_windows = (unsigned int)least;
	limits->most_windows = (unsigned int)most;
	return true;
}

static bool set_percent(double *of, const char *text)
{
	char *rest;

	*of = strtod(text, &rest);
	return rest != text && *rest == '\0' && *of > 0 && *of <= 100;
}

static bool set_accelerators(struct options *options, const char *text)
{
	char list[64];

	options->accelerators_given = true;
	options->accelerators = 0;
	if (strcmp(text, "none") == 0)
		return true;
	if ((size_t)snprintf(list, sizeof(list), "%s", text) >= sizeof(list))
		return false;
	for (char *rest = list, *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
		int kind = accelerator_kind_named(name);

		if (kind < 0)
			return false;
		options->accelerators |= NF_USES(kind);
	}
	return true;
}

static bool set_counters(struct options *options, const char *text)
{
	for (int source = COUNTERS_PERF; source <= COUNTERS_NONE; source++)
		if (strcmp(counter_source_names[source], text) == 0)
			options->counters = (enum counter_source)source;
	return options->counters != COUNTERS_BEST;
}

static bool refuse_ports(const char *why)
{
	fprintf(stderr,
		"nf-testbed: --port: %s\n"
		"hint: --port 03:00.0,dv_flow_en=2 --port 03:00.1,dv_flow_en=2 are the inside and "
		"the outside port of a card; `dpdk-devbind.py --status-dev net` lists addresses\n",
		why);
	return false;
}

static bool add_port(struct options *options, const char *text)
{
	char why[256];

	return ports_add(&options->ports, text, why, sizeof(why)) || refuse_ports(why);
}

/* Without DOCA Flow nothing would use ports. */
static bool check_ports(const struct options *options)
{
	char why[256];

	if (!ports_complete(&options->ports, why, sizeof(why)))
		return refuse_ports(why);
#ifndef WITH_DOCA_FLOW
	if (options->ports.n > 0) {
		fprintf(stderr, "nf-testbed: --port: this program was built without DOCA Flow, and "
				"nothing else uses ports\n"
				"hint: build it where DOCA 2.2 is installed\n");
		return false;
	}
#endif
	return true;
}

static bool set(struct options *options, int option, const char *text)
{
	unsigned long units;
	char *rest;

	switch (option) {
	case CORES:
		options->cores = text;
		return true;
	case ACCELERATORS:
		return set_accelerators(options, text);
	case SHARE_CLIENT_CORE:
		options->share_client_core = true;
		return true;
	case REALTIME:
		options->realtime = true;
		return true;
	case BEST_EFFORT_ANSWERS:
		options->limits.best_effort = true;
		return true;
	case SHARED_MACHINE:
		options->limits.shared_machine = true;
		return true;
	case FASTEST_PROBE:
		return set_unsigned(&options->fastest_probe, text, 1, 1000000);
	case WINDOW_MS:
		return set_unsigned(&options->limits.window_ms, text, LEAST_WINDOW_MS, 60000);
	case WINDOWS:
		return set_windows(&options->limits, text);
	case STANDARD_ERROR:
		return set_percent(&options->limits.standard_error_pct, text);
	case NULL_CONTROL:
		return set_unsigned(&options->null_control_minutes, text, 0, 100000);
	case COUNTERS:
		return set_counters(options, text);
	case TIMEOUT:
		return set_unsigned(&options->timeout_s, text, 5, 1000000);
	case MEMORY:
		return set_unsigned(&options->memory_mb, text, 64, 1u << 20);
	case COUNT:
		options->count = text;
		return true;
	case UNITS:
		if (!parse_unsigned(text, 1, 1ul << 40, &units, &rest) || *rest)
			return false;
		options->units = units;
		return true;
	case PARENT:
		return set_unsigned(&options->parent, text, 1, 1u << 30);
	case PAGES:
		options->count_pages = true;
		return true;
	default:
		options->count_events = true;
		return true;
	}
}

enum options_result options_parse(struct options *options, int argc, char **argv)
{
	int option, index;

	*options = (struct options){
		.memory_mb = 2048,
		.null_control_minutes = 10,
		.timeout_s = 60,
		.units = 1,
		.limits = {.window_ms = 50,
			   .least_windows = 20,
			   .most_windows = 600,
			   .standard_error_pct = 0.5},
	};
	while ((option = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (option == HELP) {
			fputs(usage, stdout);
			return OPTIONS_HELP;
		}
		if (option == '?' || option == ':')
			return OPTIONS_INVALID;
		if (option == PORT) {
			if (!add_port(options, optarg))
				return OPTIONS_INVALID;
		} else if (!set(options, option, optarg)) {
			fprintf(stderr, "nf-testbed: --%s: %s is not valid\n",
				long_options[index].name, optarg);
			return OPTIONS_INVALID;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "nf-testbed: %s: unexpected argument\n", argv[optind]);
		return OPTIONS_INVALID;
	}
	if (options->fastest_probe > 0 && !options->limits.shared_machine) {
		fprintf(stderr, "nf-testbed: --fastest-probe: it is for --shared-machine only\n");
		return OPTIONS_INVALID;
	}
	return check_ports(options) ? OPTIONS_SERVE : OPTIONS_INVALID;
}
