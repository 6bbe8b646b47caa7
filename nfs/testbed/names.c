#include "testbed/names.h"

#include <string.h>

#include "core/traffic.h"

#define NAME_OF(kind, name) name,
const char *const accelerator_names[ACCELERATOR_KINDS] = {ACCELERATORS(NAME_OF)};

const struct nf_parameter traffic_attributes[TRAFFIC_ATTRIBUTES] = {
	[FLOWS] = {"flows", "concurrent flows", 1, 500000, 16000},
	[PACKET_SIZE] = {"packet_size", "bytes", TRAFFIC_LEAST_SIZE + 4, 1500, 1500},
	[MTBR] = {"mtbr", "matches per 10^6 bytes of payload", 0, 1100, 600},
};

const struct nf_parameter traffic_zipf = {"zipf", "exponent of the flows' popularity", 0, 4, 0};

static const struct nf_parameter offered[] = {
	{"wss_mb", "", 0.1, 64, 8},    {"access_mops", "", 1, 500, 0},
	{"mtbr", "", 0, 1100, 600},    {"packet_size", "", TRAFFIC_LEAST_SIZE + 4, 1500, 1500},
	{"rate_kpps", "", 0, 4000, 0},
};

int accelerator_kind_named(const char *name)
{
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (strcmp(accelerator_names[kind], name) == 0)
			return kind;
	return -1;
}

const struct nf_parameter *offered_parameter(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(offered); i++)
		if (strcmp(offered[i].name, name) == 0)
			return &offered[i];
	return NULL;
}
