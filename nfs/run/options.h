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

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* OPTIONS_DONE after --help or --list; OPTIONS_WRONG after printing every fault, and a hint. */
enum options_result options_read(struct options *options, int argc, char **argv);
