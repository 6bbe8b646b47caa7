/* A load of a run request: a network function or a chain under a traffic profile, or a bench. */
#pragma once

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bench.h"
#include "core/nf.h"
#include "core/traffic.h"
#include "testbed/chain_load.h"

#define MOST_LOADS 16

struct load {
	/* One of the three. */
	const struct nf_kind *nf;
	const struct bench_kind *bench;
	struct chain_load *chain;       /* the load's own */
	struct traffic_profile traffic; /* unless it is a bench, or `capture` is set */
	double rate_kpps;               /* offered to a function or chain; 0: as fast as it goes */
	/*
	 * Of a function, if it is above 1: as many copies run, one a core. As by receive-side
	 * scaling, each has its share of the flows, in tables of its own.
	 */
	unsigned int cores;
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

static inline bool has_flow_table(const struct nf_kind *nf)
{
	for (unsigned int i = 0; i < nf->n_parameters; i++)
		if (is_flow_table(nf->parameters[i].name))
			return true;
	return false;
}

/* Flows of one of its copies; the first one has no fewer than any other. */
static inline uint32_t load_flows(const struct load *load, unsigned int copy)
{
	const uint32_t cores = RTE_MAX(load->cores, 1u);

	return load->traffic.flows / cores + (copy < load->traffic.flows % cores);
}

/* Packets after which a copy has seen its flows and tables are filled; 0 without tables. */
static inline uint64_t load_fill(const struct load *load, unsigned int copy)
{
	bool table = load->nf && has_flow_table(load->nf);

	for (unsigned int i = 0; load->chain && i < load->chain->spec.n_functions; i++)
		table |= has_flow_table(load->chain->spec.functions[i].kind);
	return table ? load_flows(load, copy) : 0;
}

/* Units per second that 1 of a bench's rate parameter means; 0 for all other parameters. */
static inline double rate_unit(const char *parameter)
{
	if (strcmp(parameter, "access_mops") == 0)
		return 1e6;
	return strcmp(parameter, "rate_kpps") == 0 ? 1e3 : 0;
}

/* Most units per second, by the rate that is given; infinite without one. */
static inline double load_limit(const struct load *load)
{
	if (load->rate_kpps > 0)
		return 1e3 * load->rate_kpps;
	for (unsigned int i = 0; load->bench && i < load->n_settings; i++) {
		const double limit = rate_unit(load->settings[i].name) * load->settings[i].value;

		if (limit > 0)
			return limit;
	}
	return INFINITY;
}

static inline const char *load_name(const struct load *load)
{
	return load->chain ? load->chain->name : load->nf ? load->nf->name : load->bench->name;
}

/* Sum of NF_USES(). */
static inline unsigned int load_accelerators(const struct load *load)
{
	if (load->chain)
		return chain_load_accelerators(load->chain);
	return load->nf ? load->nf->accelerators : load->bench->accelerators;
}

/* Cores that it runs on, without engines of accelerators. */
static inline unsigned int load_cores(const struct load *load)
{
	return load->chain ? load->chain->spec.n_cores : RTE_MAX(load->cores, 1u);
}

static inline unsigned int co_location_accelerators(const struct co_location *co_location)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < co_location->n; i++)
		used |= load_accelerators(&co_location->loads[i]);
	return used;
}

/* Whether a function changes payloads, so that its traffic must renew them. */
static inline bool load_alters(const struct load *load)
{
	return load->chain ? chain_load_alters(load->chain) : load->nf && load->nf->alters;
}

/* Cores of all loads together. */
static inline unsigned int co_location_cores(const struct co_location *co_location)
{
	unsigned int cores = 0;

	for (unsigned int i = 0; i < co_location->n; i++)
		cores += load_cores(&co_location->loads[i]);
	return cores;
}

/* Free what its loads own. */
static inline void co_location_release(struct co_location *co_location)
{
	for (unsigned int i = 0; i < co_location->n; i++)
		free(co_location->loads[i].chain);
	co_location->n = 0;
}
