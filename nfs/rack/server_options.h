/* Options of nf-server. */
#pragma once

#include "run/chain_file.h"

struct server_options {
	struct chain_file chain;
	bool control; /* stay up, and take orders */
	const char *link, *report;
	unsigned int memory_mb;
	bool pinned;
	int pins[CHAIN_MOST_CORES]; /* processors, by the chain's cores */
};

/*
 * As command_line_read(). The chain runs on as many cores as its file names, or on one if fewer are
 * allowed.
 */
int server_options_read(struct server_options *options, int argc, char **argv);
