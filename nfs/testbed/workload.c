#include "testbed/workload.h"

#include <stdio.h>

#include <rte_errno.h>

#include "core/memory.h"

#define SPARE_PACKETS 4095
/*
 * Packets that may wait for a function: those that come while it processes a burst, and as many
 * again twice. A core may be lost for as long in a window of usual length (MOST_LOST).
 */
#define MOST_WAITING (4 * NF_BURST)
#define MOST_LATE_S 250e-6
#define MOST_WAITING_FOR_CHAIN 4096
/* Packets a second that are timed: to time all would slow down functions that take few cycles. */
#define TIMED_KPPS 200
#define SEED_STEP 0x9e3779b9 /* copies have packets of their own */

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

static int create_traffic(struct workload *workload, const struct load *load, unsigned int copy,
			  uint64_t seed)
{
	struct traffic_profile profile = load->traffic;

	profile.flows = load_flows(load, copy);
	workload->traffic = load->capture[0] ? traffic_create_pcap(load->capture)
					     : traffic_create(&profile, seed + copy * SEED_STEP);
	if (!workload->traffic)
		return -ENOMEM;
	traffic_sweep(workload->traffic);
	return load_alters(load) ? traffic_renew(workload->traffic) : 0;
}

static int create_nf(struct workload *workload, const struct load *load, unsigned int copy,
		     struct accelerator *const *accelerators)
{
	const double share = (double)load_flows(load, copy) / load->traffic.flows;
	struct nf_config config = {
		.name = load->nf->name,
		.execution = load->execution,
		.spare = workload->spare,
	};

	for (int i = 0; accelerators && i < ACCELERATOR_KINDS; i++)
		config.accelerators[i] = accelerators[i];
	workload->source =
		source_at(workload->traffic, share * load->rate_kpps, MOST_WAITING, MOST_LATE_S);
	workload->source.fill = workload->fill;
	if (load->rate_kpps > TIMED_KPPS)
		workload->source.mask =
			rte_align32pow2((uint32_t)(NF_BURST * load->rate_kpps / TIMED_KPPS)) - 1;
	workload->nf = nf_create(&config, load->settings, load->n_settings);
	return workload->nf ? 0 : -ENOMEM;
}

static int create_chain(struct workload *workload, const struct load *load,
			struct accelerator *const *accelerators)
{
	const struct source source =
		source_at(workload->traffic, load->rate_kpps, MOST_WAITING_FOR_CHAIN, 0);

	workload->chain =
		chain_workload_create(load->chain, &source, workload->spare, accelerators);
	return workload->chain ? 0 : -ENOMEM;
}

static int create_bench(struct workload *workload, const struct load *load,
			struct accelerator *const *accelerators)
{
	workload->bench = bench_create(load->bench->name, accelerators, load->settings,
				       load->n_settings);
	return workload->bench ? 0 : -ENOMEM;
}

static int create(struct workload *workload, const struct load *load, unsigned int copy,
		  struct accelerator *const *accelerators, uint64_t seed)
{
	int result;

	if (load->bench)
		return create_bench(workload, load, accelerators);
	result = create_spare(workload, load_name(load));
	if (result == 0)
		result = create_traffic(workload, load, copy, seed);
	if (result < 0)
		return result;
	workload->fill = load_fill(load, copy);
	return load->chain ? create_chain(workload, load, accelerators)
			   : create_nf(workload, load, copy, accelerators);
}

struct workload *workload_create(const struct load *load, struct accelerator *const *accelerators,
				 uint64_t seed)
{
	struct workload *first = NULL, **place = &first;
	unsigned int copy = 0;

	do {
		*place = nf_zalloc_for(load_name(load), sizeof(**place));
		if (!*place || create(*place, load, copy, accelerators, seed) < 0) {
			workload_destroy(first);
			return NULL;
		}
		place = &(*place)->next;
	} while (++copy < load->cores && load_flows(load, copy) > 0);
	return first;
}

void workload_destroy(struct workload *workload)
{
	if (!workload)
		return;
	workload_destroy(workload->next);
	nf_destroy(workload->nf);
	chain_workload_destroy(workload->chain);
	traffic_destroy(workload->traffic);
	rte_mempool_free(workload->spare);
	bench_destroy(workload->bench);
	nf_free(workload);
}

struct workload *workload_on(struct workload *workload, unsigned int core)
{
	for (; core > 0 && workload && !workload->chain; core--)
		workload = workload->next;
	return workload;
}

static uint64_t process_burst(struct workload *workload, uint64_t now_us)
{
	struct rte_mbuf *packets[NF_BURST];
	const uint16_t n = source_receive(&workload->source, packets);

	workload->nf->now_us = now_us;
	if (n == 0 && workload->source.cycles_per_packet > 0)
		nf_poll(workload->nf, &workload->out);
	else
		nf_process(workload->nf, packets, n, &workload->out);
	if (workload->source.timed) {
		core_latencies_begin(&workload->latencies, &workload->epoch);
		core_latencies_add(&workload->latencies, &workload->source, workload->out.packets,
				   workload->out.n);
	}
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
	for (; workload; workload = workload->next)
		__atomic_fetch_add(&workload->epoch, 1, __ATOMIC_RELAXED);
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
