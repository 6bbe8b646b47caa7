/* A load of a run request: a network function under a traffic profile, or a bench. */
#ifndef NFS_TESTBED_LOAD_H
#define NFS_TESTBED_LOAD_H

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/bench.h"
#include "core/nf.h"
#include "core/traffic.h"

#define MOST_LOADS 16

struct load {
	const struct nf_kind *nf; /* NULL for a bench */
	const struct bench_kind *bench;
	struct traffic_profile traffic; /* for a network function, unless `capture` is set */
	char capture[PATH_MAX];      /* file whose packets it gets; empty for generated traffic */
	enum nf_execution execution; /* 0: the default */
	unsigned int n_settings;
	struct nf_setting settings[NF_MOST_PARAMETERS];
};

/* Loads that run side by side. */
struct co_location {
	unsigned int n;
	struct load loads[MOST_LOADS];
};

/* Names of parameters that set the size of a per-flow table. */
static inline bool is_flow_table(const char *parameter)
{
	return strcmp(parameter, "flows") == 0 || strcmp(parameter, "sessions") == 0 ||
	       strcmp(parameter, "connections") == 0;
}

/* Packets after which every flow has been seen and the table is filled; 0 without a table. */
static inline uint64_t load_fill(const struct load *load)
{
	for (unsigned int i = 0; load->nf && i < load->nf->n_parameters; i++)
		if (is_flow_table(load->nf->parameters[i].name))
			return load->traffic.flows;
	return 0;
}

/* Units per second that 1 of a bench's rate parameter means; 0 for all other parameters. */
static inline double rate_unit(const char *parameter)
{
	if (strcmp(parameter, "access_mops") == 0)
		return 1e6;
	return strcmp(parameter, "rate_kpps") == 0 ? 1e3 : 0;
}

/* Most units per second, by the rate that a bench is given; infinite without one. */
static inline double load_limit(const struct load *load)
{
	for (unsigned int i = 0; load->bench && i < load->n_settings; i++) {
		const double limit = rate_unit(load->settings[i].name) * load->settings[i].value;

		if (limit > 0)
			return limit;
	}
	return INFINITY;
}

static inline const char *load_name(const struct load *load)
{
	return load->nf ? load->nf->name : load->bench->name;
}

/* Sum of NF_USES(). */
static inline unsigned int load_accelerators(const struct load *load)
{
	return load->nf ? load->nf->accelerators : load->bench->accelerators;
}

static inline unsigned int co_location_accelerators(const struct co_location *co_location)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < co_location->n; i++)
		used |= load_accelerators(&co_location->loads[i]);
	return used;
}

#endif
