#include "core/chain.h"

#include <rte_hash_crc.h>
#include <rte_pause.h>

#include "core/chain_parts.h"
#include "core/nsh.h"

#define MOST_TURNS 4 /* of a packet: functions that send to and fro do not keep it for ever */

static void run(struct chain *chain, uint16_t stop, struct rte_mbuf **packets, uint16_t n,
		uint64_t now_us);

static void lose(struct chain_core *core, struct rte_mbuf **packets, uint16_t n)
{
	core->lost += n;
	rte_pktmbuf_free_bulk(packets, n);
}

/* Packets with equal ones take the same way out of a function, unless shares decide. */
static inline uint32_t way_key(const struct rte_mbuf *packet)
{
	return metadata_of_const(packet)->way;
}

/* Equal for all packets of a flow as they leave this function. */
static uint32_t flow_hash(struct rte_mbuf *mbuf)
{
	const struct packet headers = packet_headers(mbuf);
	struct flow_key key;
	uint64_t halves[2];

	if (!packet_has_ipv4(&headers))
		return 0;
	key = packet_flow(mbuf, &headers);
	memcpy(halves, &key, sizeof(halves));
	/* spread over all bits: limits compare the highest first */
	return rte_hash_crc_8byte(halves[1], rte_hash_crc_8byte(halves[0], 0)) * 0x9e3779b1u;
}

static unsigned int way_of(const struct gate *gate, struct rte_mbuf *mbuf)
{
	const uint32_t hash = flow_hash(mbuf);
	unsigned int way = 0;

	while (way + 1 < gate->n && hash >= gate->ways[way].limit)
		way++;
	return way;
}

static void leave(struct chain *chain, unsigned int core, const struct target *target,
		  struct rte_mbuf **packets, uint16_t n)
{
	const bool back = packet_from(packets[0]) == NF_OUTSIDE;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (target->nsh && !back && !nsh_push(packets[i], target->service))
			lose(chain->cores[core], &packets[i], 1);
		else
			packets[kept++] = packets[i];
	}
	if (kept > 0)
		chain->config.sink(chain->config.state, core, back ? CHAIN_BACK : CHAIN_FORWARD,
				   packets, kept);
}

/* To another core; waits while its ring is full, as long as that core may take from it. */
static void cross(struct chain *chain, unsigned int from, unsigned int to,
		  struct rte_mbuf **packets, uint16_t n)
{
	const bool *interrupt = chain->config.interrupt;
	uint16_t sent = 0;

	/* two cores must not wait for each other */
	const bool may_wait = chain->one_way && packet_from(packets[0]) == NF_INSIDE;

	for (;;) {
		sent += rte_ring_enqueue_burst(chain->cores[to]->ring, (void **)&packets[sent],
					       n - sent, NULL);
		if (likely(sent == n))
			return;
		if (!may_wait || (interrupt && __atomic_load_n(interrupt, __ATOMIC_RELAXED)))
			break;
		rte_pause();
	}
	lose(chain->cores[from], packets + sent, n - sent);
}

/* Take a burst to a stop, from `core`. */
static void deliver(struct chain *chain, unsigned int core, uint16_t stop,
		    struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	const unsigned int to = chain->places[chain->stops[stop].place]->core;
	const struct metadata at = {.stop = stop, .from = (uint8_t)packet_from(packets[0])};

	for (uint16_t i = 0; i < n; i++) /* all come from the same side */
		metadata_of(packets[i])->way = at.way;
	if (likely(to == core))
		run(chain, stop, packets, n, now_us);
	else
		cross(chain, core, to, packets, n);
}

static void take_to(struct chain *chain, unsigned int core, const struct target *target,
		    struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	if (target->stop == NO_STOP)
		leave(chain, core, target, packets, n);
	else
		deliver(chain, core, target->stop, packets, n, now_us);
}

/* Split a burst by the shares of a gate's edges. */
static void split(struct chain *chain, unsigned int core, const struct stop *stop,
		  const struct gate *gate, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	struct rte_mbuf *all[NF_BURST];
	uint8_t ways[NF_BURST];

	/* what passes on the first of them may overwrite the burst */
	memcpy(all, packets, n * sizeof(*packets));
	for (uint16_t i = 0; i < n; i++)
		ways[i] = (uint8_t)way_of(gate, all[i]);
	for (unsigned int way = 0; way < gate->n; way++) {
		const struct target *target =
			&chain->targets[stop->targets + gate->ways[way].edge];
		struct rte_mbuf *burst[NF_BURST];
		uint16_t of_way = 0;

		for (uint16_t i = 0; i < n; i++)
			if (ways[i] == way)
				burst[of_way++] = all[i];
		if (of_way > 0)
			take_to(chain, core, target, burst, of_way, now_us);
	}
}

/* Take packets that leave a function forward or by a numbered gate to where they go. */
static void go_on(struct chain *chain, unsigned int core, const struct stop *stop,
		  struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	const struct place *place = chain->places[stop->place];
	const struct metadata *metadata = metadata_of(packets[0]);
	const struct gate *gate = &place->gates[metadata->gate];

	if (metadata->from == NF_OUTSIDE)
		take_to(chain, core, &(struct target){.stop = stop->parent}, packets, n, now_us);
	else if (unlikely(metadata->gate >= place->n_gates || gate->n == 0))
		take_to(chain, core, &(struct target){.stop = NO_STOP}, packets, n, now_us);
	else if (likely(gate->n == 1))
		take_to(chain, core, &chain->targets[stop->targets + gate->ways[0].edge], packets,
			n, now_us);
	else
		split(chain, core, stop, gate, packets, n, now_us);
}

/*
 * Turn packets that a function sends back. They wait in the backlog of the core, because functions
 * before this one are still at work on their burst.
 */
static void turn_back(struct chain *chain, unsigned int core, struct rte_mbuf **packets, uint16_t n)
{
	struct chain_core *of = chain->cores[core];

	for (uint16_t i = 0; i < n; i++) {
		struct metadata *metadata = metadata_of(packets[i]);

		metadata->gate = NF_FORWARD;
		metadata->from = metadata->from == NF_INSIDE ? NF_OUTSIDE : NF_INSIDE;
		if (metadata->turns++ == MOST_TURNS || of->n_backlog == BACKLOG_PACKETS)
			lose(of, &packets[i], 1);
		else
			of->backlog[of->n_backlog++] = packets[i];
	}
}

/* Pass on a burst of packets that leave a function by the same gate. */
static void pass_on(struct chain *chain, unsigned int core, struct rte_mbuf **packets, uint16_t n,
		    uint64_t now_us)
{
	const struct metadata *metadata = metadata_of(packets[0]);
	const struct stop *stop = &chain->stops[metadata->stop];
	struct chain_counts *counts = &chain->places[stop->place]->counts;

	if (unlikely(metadata->gate == NF_BACK)) {
		counts->sent_back += n;
		turn_back(chain, core, packets, n);
	} else {
		counts->sent += n;
		go_on(chain, core, stop, packets, n, now_us);
	}
}

static inline bool take_one_way(const struct nf_out *out)
{
	const uint32_t key = way_key(out->packets[0]);
	uint32_t differ = 0;

	for (uint32_t i = 1; i < out->n; i++)
		differ |= way_key(out->packets[i]) ^ key;
	return differ == 0;
}

/*
 * Pass on what a function has sent, in bursts of packets that take the same way: nearly always all
 * of them, which then stay where they are. The function does not run again before this returns.
 */
static void dispatch(struct chain *chain, struct place *place, uint64_t now_us)
{
	struct nf_out *out = &place->out;

	if (likely(out->n > 0 && out->n <= NF_BURST && take_one_way(out))) {
		const uint16_t n = (uint16_t)out->n;

		out->n = 0;
		pass_on(chain, place->core, out->packets, n, now_us);
		return;
	}
	while (out->n > 0) {
		const uint32_t key = way_key(out->packets[0]);
		struct rte_mbuf *burst[NF_BURST];
		uint32_t left = 0;
		uint16_t n = 0;

		for (uint32_t i = 0; i < out->n; i++) {
			if (n < NF_BURST && way_key(out->packets[i]) == key)
				burst[n++] = out->packets[i];
			else
				out->packets[left++] = out->packets[i];
		}
		out->n = left;
		pass_on(chain, place->core, burst, n, now_us);
	}
}

static void run(struct chain *chain, uint16_t stop, struct rte_mbuf **packets, uint16_t n,
		uint64_t now_us)
{
	struct place *place = chain->places[chain->stops[stop].place];

	place->nf->now_us = now_us;
	place->idle = false;
	place->counts.entered += n;
	nf_process(place->nf, packets, n, &place->out);
	dispatch(chain, place, now_us);
}

/* Run packets at their stops, those of one stop and from one side together, in order. */
static void run_mixed(struct chain *chain, unsigned int core, struct rte_mbuf **packets,
		      uint16_t n, uint64_t now_us)
{
	while (n > 0) {
		const uint32_t key = way_key(packets[0]);
		const uint16_t stop = metadata_of(packets[0])->stop;
		struct rte_mbuf *burst[NF_BURST];
		uint16_t of_stop = 0, left = 0;

		for (uint16_t i = 0; i < n; i++) {
			if (way_key(packets[i]) == key)
				burst[of_stop++] = packets[i];
			else
				packets[left++] = packets[i];
		}
		n = left;
		deliver(chain, core, stop, burst, of_stop, now_us);
	}
}

/* Packets that were turned go on from the stop that turned them. */
static void run_backlog(struct chain *chain, unsigned int core, uint64_t now_us)
{
	struct chain_core *of = chain->cores[core];

	while (of->n_backlog > 0) {
		struct rte_mbuf *turned = of->backlog[0];

		of->n_backlog--;
		memmove(of->backlog, of->backlog + 1, of->n_backlog * sizeof(*of->backlog));
		go_on(chain, core, &chain->stops[metadata_of(turned)->stop], &turned, 1, now_us);
	}
}

/* The stop of a packet with a network service header, which is removed; the usual one without. */
static uint16_t entry_of(struct chain *chain, struct rte_mbuf *mbuf)
{
	struct service service;

	switch (nsh_pop(mbuf, &service)) {
	case NSH_NONE:
		return chain->inside;
	case NSH_INVALID:
		return NO_STOP;
	case NSH_POPPED:
		break;
	}
	for (unsigned int i = 0; i < chain->n_entries; i++)
		if (chain->entries[i].service.path == service.path &&
		    chain->entries[i].service.index == service.index)
			return chain->entries[i].stop;
	return NO_STOP;
}

void chain_enter(struct chain *chain, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	const enum nf_side from = packet_from(packets[0]);
	const unsigned int core = chain_entry_core(chain, from);
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		const bool outside = packet_from(packets[i]) == NF_OUTSIDE;
		uint16_t stop = outside ? chain->outside : chain->inside;

		if (chain->n_entries > 0 && !outside)
			stop = entry_of(chain, packets[i]);
		if (unlikely(stop == NO_STOP)) {
			lose(chain->cores[core], &packets[i], 1);
			continue;
		}
		metadata_of(packets[i])->stop = stop;
		packets[kept++] = packets[i];
	}
	run_mixed(chain, core, packets, kept, now_us);
	run_backlog(chain, core, now_us);
}

unsigned int chain_entry_core(const struct chain *chain, enum nf_side from)
{
	const uint16_t stop = from == NF_OUTSIDE ? chain->outside : chain->inside;

	return chain->places[chain->stops[stop].place]->core;
}

/* Let functions that had no burst since the last step send what they hold. */
static void poll_idle(struct chain *chain, unsigned int core, uint64_t now_us)
{
	for (unsigned int i = 0; i < chain->n_places; i++) {
		struct place *place = chain->places[i];

		if (place->core != core || !place->nf->kind->poll)
			continue;
		if (place->idle) {
			place->nf->now_us = now_us;
			nf_poll(place->nf, &place->out);
			dispatch(chain, place, now_us);
		}
		place->idle = true;
	}
}

unsigned int chain_step(struct chain *chain, unsigned int core, uint64_t now_us)
{
	struct rte_mbuf *packets[NF_BURST];
	unsigned int n =
		rte_ring_dequeue_burst(chain->cores[core]->ring, (void **)packets, NF_BURST, NULL);

	if (n > 0)
		run_mixed(chain, core, packets, (uint16_t)n, now_us);
	poll_idle(chain, core, now_us);
	run_backlog(chain, core, now_us);
	return n;
}

/* One thread plays all cores: each takes a burst in turn, so that no ring fills. */
static bool step_all(struct chain *chain, uint64_t now_us)
{
	bool any = false;

	for (unsigned int core = 0; core < chain->n_cores; core++)
		any |= chain_step(chain, core, now_us) > 0;
	return any;
}

void chain_flush(struct chain *chain, uint64_t now_us)
{
	uint64_t passed, before;

	do { /* what one function sends, a later one may hold again */
		before = 0;
		passed = 0;
		for (unsigned int i = 0; i < chain->n_places; i++)
			before += chain->places[i]->counts.entered;
		for (unsigned int i = 0; i < chain->n_places; i++) {
			struct place *place = chain->places[i];

			while (step_all(chain, now_us))
				;
			nf_flush(place->nf, &place->out);
			dispatch(chain, place, now_us);
		}
		for (unsigned int i = 0; i < chain->n_places; i++)
			passed += chain->places[i]->counts.entered;
	} while (passed != before);
}

unsigned int chain_functions(const struct chain *chain)
{
	return chain->n_places;
}

struct nf *chain_function(const struct chain *chain, unsigned int at)
{
	return chain->places[at]->nf;
}

const char *chain_function_name(const struct chain *chain, unsigned int at)
{
	return chain->places[at]->name;
}

struct chain_counts chain_counts_of(const struct chain *chain, unsigned int at)
{
	return chain->places[at]->counts;
}

uint64_t chain_lost(const struct chain *chain)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < chain->n_cores; i++)
		lost += chain->cores[i]->lost;
	return lost;
}
