#include "testbed/workload.h"

#include <stdio.h>

#include <rte_errno.h>

#include "core/memory.h"

#define SPARE_PACKETS 4095

static int create_spare(struct workload *workload, const char *of)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "spare_%u", n_created++);
	workload->spare = rte_pktmbuf_pool_create(name, SPARE_PACKETS, 128, 0,
						  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (workload->spare)
		return 0;
	fprintf(stderr, "%s: no memory for a packet pool: %s\n", of, rte_strerror(rte_errno));
	return -rte_errno;
}

static int create_traffic(struct workload *workload, const struct load *load, uint64_t seed)
{
	workload->traffic = load->capture[0] ? traffic_create_pcap(load->capture)
					     : traffic_create(&load->traffic, seed);
	if (!workload->traffic)
		return -ENOMEM;
	traffic_sweep(workload->traffic);
	return load_alters(load) ? traffic_renew(workload->traffic) : 0;
}

static int create_nf(struct workload *workload, const struct load *load,
		     struct accelerator *const *accelerators)
{
	struct nf_config config = {
		.name = load->nf->name,
		.execution = load->execution,
		.spare = workload->spare,
	};

	for (int i = 0; accelerators && i < ACCELERATOR_KINDS; i++)
		config.accelerators[i] = accelerators[i];
	workload->nf = nf_create(&config, load->settings, load->n_settings);
	return workload->nf ? 0 : -ENOMEM;
}

static int create_chain(struct workload *workload, const struct load *load,
			struct accelerator *const *accelerators)
{
	workload->chain = chain_workload_create(load->chain, workload->traffic, workload->spare,
						accelerators);
	return workload->chain ? 0 : -ENOMEM;
}

static int create_bench(struct workload *workload, const struct load *load,
			struct accelerator *const *accelerators)
{
	workload->bench = bench_create(load->bench->name, accelerators, load->settings,
				       load->n_settings);
	return workload->bench ? 0 : -ENOMEM;
}

static int create(struct workload *workload, const struct load *load,
		  struct accelerator *const *accelerators, uint64_t seed)
{
	int result;

	if (load->bench)
		return create_bench(workload, load, accelerators);
	result = create_spare(workload, load_name(load));
	if (result == 0)
		result = create_traffic(workload, load, seed);
	if (result < 0)
		return result;
	return load->chain ? create_chain(workload, load, accelerators)
			   : create_nf(workload, load, accelerators);
}

struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed)
{
	struct workload *workload = nf_zalloc(sizeof(*workload));

	if (!workload) {
		fprintf(stderr, "%s: no memory for an instance\n", load_name(load));
		return NULL;
	}
	if (create(workload, load, accelerators, seed) < 0) {
		workload_destroy(workload);
		return NULL;
	}
	return workload;
}

void workload_destroy(struct workload *workload)
{
	if (!workload)
		return;
	nf_destroy(workload->nf);
	chain_workload_destroy(workload->chain);
	traffic_destroy(workload->traffic);
	rte_mempool_free(workload->spare);
	bench_destroy(workload->bench);
	nf_free(workload);
}

static uint64_t process_burst(struct workload *workload, uint64_t now_us)
{
	struct rte_mbuf *packets[NF_BURST];
	uint16_t n = traffic_receive(workload->traffic, packets, NF_BURST);

	workload->nf->now_us = now_us;
	nf_process(workload->nf, packets, n, &workload->out);
	nf_out_free(&workload->out);
	return n;
}

static uint64_t step(struct workload *workload, unsigned int core, uint64_t now_us)
{
	if (workload->nf)
		return process_burst(workload, now_us);
	if (workload->chain)
		return chain_workload_step(workload->chain, core, now_us);
	return bench_step(workload->bench);
}

/* Only one core of a chain lets packets enter, so only one writes. */
void workload_step(struct workload *workload, unsigned int core, uint64_t now_us)
{
	const uint64_t done = step(workload, core, now_us);

	if (done > 0)
		__atomic_store_n(&workload->done, workload->done + done, __ATOMIC_RELAXED);
}

void workload_flush(struct workload *workload)
{
	if (!workload->nf)
		return;
	nf_flush(workload->nf, &workload->out);
	nf_out_free(&workload->out);
}

void workload_begin(struct workload *workload)
{
	if (workload->chain)
		chain_workload_reset(workload->chain);
}

void workload_interrupt(struct workload *workload)
{
	if (workload->chain)
		chain_workload_interrupt(workload->chain);
}

void workload_end(struct workload *workload, uint64_t now_us)
{
	if (workload->chain)
		chain_workload_flush(workload->chain, now_us);
}
