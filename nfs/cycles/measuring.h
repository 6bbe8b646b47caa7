/* What all measurements of cycles share. */
#pragma once

#include "core/nf.h"
#include "core/traffic.h"

#define BURST_US 10 /* between bursts, by the functions' clock */
#define WARM_MS 1000

/* The traffic: each number of flows in turn. */
#define MOST_FLOWS 8
struct load {
	unsigned int n_flows;
	uint32_t flows[MOST_FLOWS];
	unsigned int packet_size;
};

static inline struct traffic_profile profile_of(const struct load *load, unsigned int at)
{
	return (struct traffic_profile){
		.flows = load->flows[at], .packet_size = (uint16_t)load->packet_size, .mtbr = 600};
}

/* A sample of `values`, which are sorted, below which a share of them is; 0.5: the median. */
double quantile(double *values, unsigned int n, double share);

/* Run to completion with software engines served on the same core, as in peers. */
struct nf_config config_of(const char *function, struct rte_mempool *spare);
