/* Options of nf-run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/chain_file.h"
#include "run/device.h"

struct options {
	struct chain_file chain; /* of --nf or --chain */
	const char *in, *outside, *out, *back;
	uint64_t count;  /* most packets from `in`; 0: no limit */
	double seconds;  /* longest time; 0: no limit */
	unsigned int memory_mb;
	bool each;
	struct device_options device;
};

/* As command_line_read(), and 0 after --list. */
int options_read(struct options *options, int argc, char **argv);
