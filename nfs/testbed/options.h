/* The command-line options of the program. */
#pragma once

#include "testbed/measure.h"

enum counter_source { COUNTERS_BEST, COUNTERS_PERF, COUNTERS_CACHEGRIND, COUNTERS_NONE };

/* Indexed by enum counter_source. */
extern const char *const counter_source_names[];

struct options {
	const char *cores; /* a list such as "0,2-5"; NULL: all */
	bool share_client_core;
	bool realtime;
	enum counter_source counters;
	unsigned int accelerators; /* sum of NF_USES(); these get an engine */
	bool accelerators_given;
	unsigned int memory_mb;
	unsigned int null_control_minutes; /* interval; 0: none */
	unsigned int timeout_s;            /* of a response */
	unsigned int fastest_probe; /* TSC cycles, on a shared machine; 0: not known */
	struct run_limits limits;
	struct ports ports;
	const char *count;   /* a load as JSON: count its events instead of serving requests */
	uint64_t units;      /* units of work to count */
	unsigned int parent; /* process id; exit when that process does; 0: none */
	bool count_pages, count_events;
};

/* As command_line_read(). */
int options_parse(struct options *options, int argc, char **argv);
