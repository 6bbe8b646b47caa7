/* Options of nf-server-bench. */
#pragma once

#include "core/chain.h"

struct bench_options {
	const char *chain;
	bool chosen; /* the entry */
	struct service entry;
	uint32_t flows;
	uint16_t packet_size;
};

/* An exit status, 0 after --help, 2 after printing what is wrong; -1 to go on. */
int bench_options_read(struct bench_options *options, int argc, char **argv);
