/* The command line of nf-switch. */
#pragma once

#include "rack/link.h"

/* Packets that the pipeline may work on at a time: its threads. */
#define SWITCH_MOST_IN_FLIGHT 16

struct switch_link_option {
	const char *name, *path;
};

struct switch_options {
	const char *spec, *entries, *names, *in, *out, *report;
	struct switch_link_option links[LINKS_MOST];
	int n_links;
	unsigned int memory_mb, in_flight;
	unsigned int cycles; /* batches to measure */
	bool check;          /* only read the program and its entries */
};

enum switch_options_next { SWITCH_OPTIONS_RUN, SWITCH_OPTIONS_DONE, SWITCH_OPTIONS_WRONG };

/* Read the command line; prints help, or every fault. */
enum switch_options_next switch_options_read(struct switch_options *options, int argc, char **argv);
