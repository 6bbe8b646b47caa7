/* What the program is told on its command line. */
#ifndef NFS_TESTBED_OPTIONS_H
#define NFS_TESTBED_OPTIONS_H

#include "testbed/measure.h"

enum counter_source { COUNTERS_BEST, COUNTERS_PERF, COUNTERS_CACHEGRIND, COUNTERS_NONE };

/* By enum counter_source. */
extern const char *const counter_source_names[];

struct options {
	const char *cores; /* a list as in "0,2-5"; NULL: all */
	bool share_client_core;
	bool realtime;
	enum counter_source counters;
	unsigned int accelerators; /* sum of NF_USES() that get an engine */
	bool accelerators_given;
	unsigned int memory_mb;
	unsigned int null_control_minutes; /* between two; 0: none */
	unsigned int timeout_s;            /* of an answer */
	struct run_limits limits;
	const char *count;   /* a load as JSON: count it, serve nothing */
	uint64_t units;      /* of it to be counted */
	unsigned int parent; /* the process without which nobody wants them; 0: none */
	bool count_pages, count_events;
};

enum options_result { OPTIONS_SERVE, OPTIONS_HELP, OPTIONS_INVALID };

/* TOLD_HELP and TOLD_WRONG have said all there is to say. */
enum options_result options_parse(struct options *options, int argc, char **argv);

#endif
