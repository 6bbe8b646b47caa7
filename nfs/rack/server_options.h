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

enum server_options_result { SERVER_RUN, SERVER_DONE, SERVER_WRONG };

/*
 * SERVER_DONE after --help; SERVER_WRONG after printing every fault, and a hint. The chain runs on
 * as many cores as its file names, or on one if fewer are allowed.
 */
enum server_options_result server_options_read(struct server_options *options, int argc,
					       char **argv);
