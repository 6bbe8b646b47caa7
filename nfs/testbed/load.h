/* A load of a run, as asked for: a network function under a traffic profile, or a bench. */
#ifndef NFS_TESTBED_LOAD_H
#define NFS_TESTBED_LOAD_H

#include "core/bench.h"
#include "core/nf.h"
#include "core/traffic.h"

#define MOST_LOADS 16

struct load {
	const struct nf_kind *nf; /* or, when NULL: */
	const struct bench_kind *bench;
	struct traffic_profile traffic; /* of a network function */
	enum nf_execution execution;    /* 0: the first that it can do */
	unsigned int n_settings;
	struct nf_setting settings[NF_MOST_PARAMETERS];
};

/* The loads that share the machine. */
struct company {
	unsigned int n;
	struct load loads[MOST_LOADS];
};

static inline const char *load_name(const struct load *load)
{
	return load->nf ? load->nf->name : load->bench->name;
}

/* Sum of NF_USES(). */
static inline unsigned int load_accelerators(const struct load *load)
{
	return load->nf ? load->nf->accelerators : load->bench->accelerators;
}

static inline unsigned int company_accelerators(const struct company *company)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < company->n; i++)
		used |= load_accelerators(&company->loads[i]);
	return used;
}

#endif
