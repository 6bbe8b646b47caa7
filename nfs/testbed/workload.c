#include "testbed/workload.h"

#include <stdio.h>

#include <rte_errno.h>

#include "core/memory.h"

#define SPARE_PACKETS 4095

static int create_nf(struct workload *workload, const struct load *load,
		     struct accelerator *const *accelerators, uint64_t seed)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct nf_config config = {.name = load->nf->name, .execution = load->execution};

	snprintf(name, sizeof(name), "spare_%u", n_created++);
	workload->spare = rte_pktmbuf_pool_create(name, SPARE_PACKETS, 128, 0,
						  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!workload->spare) {
		fprintf(stderr, "%s: no memory for a packet pool: %s\n", load->nf->name,
			rte_strerror(rte_errno));
		return -rte_errno;
	}
	config.spare = workload->spare;
	for (int i = 0; accelerators && i < ACCELERATOR_KINDS; i++)
		config.accelerators[i] = accelerators[i];
	workload->traffic = load->capture[0] ? traffic_create_pcap(load->capture)
					     : traffic_create(&load->traffic, seed);
	if (!workload->traffic)
		return -ENOMEM;
	traffic_sweep(workload->traffic);
	workload->nf = nf_create(&config, load->settings, load->n_settings);
	return workload->nf ? 0 : -ENOMEM;
}

struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed)
{
	struct workload *workload = nf_zalloc(sizeof(*workload));
	int result = 0;

	if (!workload) {
		fprintf(stderr, "%s: no memory for an instance\n", load_name(load));
		return NULL;
	}
	if (load->nf) {
		result = create_nf(workload, load, accelerators, seed);
	} else {
		workload->bench = bench_create(load->bench->name, accelerators, load->settings,
					       load->n_settings);
		result = workload->bench ? 0 : -ENOMEM;
	}
	if (result < 0) {
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

void workload_step(struct workload *workload, uint64_t now_us)
{
	uint64_t done =
		workload->nf ? process_burst(workload, now_us) : bench_step(workload->bench);

	__atomic_store_n(&workload->done, workload->done + done, __ATOMIC_RELAXED);
}

void workload_flush(struct workload *workload)
{
	if (!workload->nf)
		return;
	nf_flush(workload->nf, &workload->out);
	nf_out_free(&workload->out);
}
