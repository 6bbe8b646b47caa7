#include "testbed/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/command_line.h"
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

/* A decimal number in a range at the start of `text`; `rest` points behind it. */
static bool parse_unsigned(const char *text, unsigned long low, unsigned long high,
			   unsigned long *value, char **rest)
{
	errno = 0;
	*value = strtoul(text, rest, 10);
	return *rest != text && *text != '-' && errno == 0 && *value >= low && *value <= high;
}

static const char *take_windows(void *state, char *value)
{
	struct run_limits *limits = &((struct options *)state)->limits;
	unsigned long least, most;
	char *rest;

	if (!parse_unsigned(value, LEAST_ROUNDS, 1000000, &least, &rest) || *rest != ',' ||
	    !parse_unsigned(rest + 1, least, 1000000, &most, &rest) || *rest)
		return "is not LEAST,MOST";
	limits->least_windows = (unsigned int)least;
	limits->most_windows = (unsigned int)most;
	return NULL;
}

static const char *take_percent(void *state, char *value)
{
	double *percent = &((struct options *)state)->limits.standard_error_pct;
	char *rest;

	*percent = strtod(value, &rest);
	if (rest != value && *rest == '\0' && *percent > 0 && *percent <= 100)
		return NULL;
	return "is not a percentage above 0, up to 100";
}

static const char *take_accelerators(void *state, char *value)
{
	struct options *options = state;
	char list[64];

	options->accelerators_given = true;
	options->accelerators = 0;
	if (strcmp(value, "none") == 0)
		return NULL;
	if ((size_t)snprintf(list, sizeof(list), "%s", value) >= sizeof(list))
		return "is not a list of accelerators";
	for (char *rest = list, *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
		int kind = accelerator_kind_named(name);

		if (kind < 0)
			return "is not a list of accelerators";
		options->accelerators |= NF_USES(kind);
	}
	return NULL;
}

static const char *take_counters(void *state, char *value)
{
	for (int source = COUNTERS_PERF; source <= COUNTERS_NONE; source++)
		if (strcmp(counter_source_names[source], value) == 0) {
			((struct options *)state)->counters = (enum counter_source)source;
			return NULL;
		}
	return "is not perf, cachegrind or none";
}

static const char *take_units(void *state, char *value)
{
	unsigned long units;
	char *rest;

	if (!parse_unsigned(value, 1, 1ul << 40, &units, &rest) || *rest)
		return "is not a number of units";
	((struct options *)state)->units = units;
	return NULL;
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

static const char *take_port(void *state, char *value)
{
	char why[256];

	if (ports_add(&((struct options *)state)->ports, value, why, sizeof(why)))
		return NULL;
	refuse_ports(why);
	return "";
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

int options_parse(struct options *options, int argc, char **argv)
{
	struct run_limits *limits = &options->limits;
	const struct command_option known[] = {
		{"cores", .text = &options->cores},
		{"accelerators", .take = take_accelerators},
		{"share-client-core", .flag = &options->share_client_core},
		{"realtime", .flag = &options->realtime},
		{"best-effort", .flag = &limits->best_effort},
		{"shared-machine", .flag = &limits->shared_machine},
		{"fastest-probe", .number = &options->fastest_probe, .least = 1, .most = 1000000},
		{"window-ms", .number = &limits->window_ms, .least = LEAST_WINDOW_MS,
		 .most = 60000},
		{"windows", .take = take_windows},
		{"standard-error", .take = take_percent},
		{"null-control", .number = &options->null_control_minutes, .most = 100000},
		{"counters", .take = take_counters},
		{"timeout", .number = &options->timeout_s, .least = 5, .most = 1000000},
		{"memory", .number = &options->memory_mb, .least = 64, .most = 1 << 20},
		{"port", .take = take_port},
		/* internal: the testbed starts itself with these to count events */
		{"count", .text = &options->count},
		{"units", .take = take_units},
		{"parent", .number = &options->parent, .least = 1, .most = 1 << 30},
		{"pages", .flag = &options->count_pages},
		{"events", .flag = &options->count_events},
		{0},
	};
	const struct command_line line = {"nf-testbed", usage, known, options};
	int result;

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
	result = command_line_read(&line, argc, argv);
	if (result != COMMAND_LINE_READ)
		return result;
	if (options->fastest_probe > 0 && !options->limits.shared_machine) {
		fprintf(stderr, "nf-testbed: --fastest-probe: it is for --shared-machine only\n");
		return 2;
	}
	return check_ports(options) ? COMMAND_LINE_READ : 2;
}
