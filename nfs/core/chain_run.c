#include "core/chain.h"

#include <sched.h>

#include <rte_pause.h>

#include "core/chain_parts.h"

#define WAITS_BEFORE_YIELD 64 /* for a processor on which the other core's thread may run */
#define MOST_TURNS 4 /* of a packet: functions that send to and fro do not keep it */

static void run(struct chain *chain, uint16_t stop, struct rte_mbuf **packets, uint16_t n,
		uint64_t now_us);

void chain_lose(struct chain_core *core, enum chain_loss loss, struct rte_mbuf **packets,
		uint16_t n)
{
	core->lost[loss] += n;
	rte_pktmbuf_free_bulk(packets, n);
}

/*
 * Packets with equal ones take the same way out of a function, unless shares decide. The stop of
 * packets is in `way` only where they may stay: in a function that holds packets, in a ring, in the
 * backlog. Elsewhere it is that of the burst.
 */
#define WHOLE_WAY UINT32_MAX
#define SIDE_AND_GATE RTE_LE32(0xffff0000)
static_assert(offsetof(struct metadata, from) == offsetof(struct metadata, way) + 2,
	      "behind the stop");

static inline uint32_t way_key(const struct rte_mbuf *packet, uint32_t mask)
{
	return metadata_of_const(packet)->way & mask;
}

static void leave(struct chain *chain, unsigned int core, const struct target *target,
		  struct rte_mbuf **packets, uint16_t n)
{
	const bool back = packet_from(packets[0]) == NF_OUTSIDE;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (target->nsh && !back && !nsh_push(packets[i], target->service))
			chain_lose(chain->cores[core], CHAIN_NO_ROOM, &packets[i], 1);
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
	unsigned int waits = 0;
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
		if (++waits % WAITS_BEFORE_YIELD == 0)
			sched_yield();
	}
	chain_lose(chain->cores[from], CHAIN_RING_FULL, packets + sent, n - sent);
}

void chain_deliver(struct chain *chain, unsigned int core, uint16_t stop, struct rte_mbuf **packets,
		   uint16_t n, uint64_t now_us)
{
	const struct place *place = chain->places[chain->stops[stop].place];
	const struct metadata *first = metadata_of(packets[0]);
	const unsigned int to = place->core;

	if (place->holds || to != core || first->gate != NF_FORWARD) {
		const struct metadata at = {.stop = stop, .from = first->from};

		for (uint16_t i = 0; i < n; i++) /* all come from the same side */
			metadata_of(packets[i])->way = at.way;
	}
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
		chain_deliver(chain, core, target->stop, packets, n, now_us);
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
		ways[i] = (uint8_t)way_of(&gate->ways, all[i]);
	for (unsigned int way = 0; way < gate->ways.n; way++) {
		const struct target *target = &chain->targets[stop->targets + gate->edges[way]];
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
	else if (unlikely(metadata->gate >= place->n_gates || gate->ways.n == 0))
		take_to(chain, core, &(struct target){.stop = NO_STOP}, packets, n, now_us);
	else if (likely(gate->ways.n == 1))
		take_to(chain, core, &chain->targets[stop->targets + gate->edges[0]], packets,
			n, now_us);
	else
		split(chain, core, stop, gate, packets, n, now_us);
}

/*
 * Turn packets that a function sends back. They wait in the backlog of the core, because functions
 * before this one are still at work on their burst.
 */
static void turn_back(struct chain *chain, unsigned int core, uint16_t stop,
		      struct rte_mbuf **packets, uint16_t n)
{
	struct chain_core *of = chain->cores[core];

	for (uint16_t i = 0; i < n; i++) {
		struct metadata *metadata = metadata_of(packets[i]);

		metadata->stop = stop;
		metadata->gate = NF_FORWARD;
		metadata->from = metadata->from == NF_INSIDE ? NF_OUTSIDE : NF_INSIDE;
		if (metadata->turns++ == MOST_TURNS || of->n_backlog == BACKLOG_PACKETS)
			chain_lose(of, CHAIN_TURNED, &packets[i], 1);
		else
			of->backlog[of->n_backlog++] = packets[i];
	}
}

/* Pass on a burst of packets that leave a function by the same gate. */
static void pass_on(struct chain *chain, unsigned int core, uint16_t stop,
		    struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	struct chain_counts *counts = &chain->places[chain->stops[stop].place]->counts;

	if (unlikely(metadata_of(packets[0])->gate == NF_BACK)) {
		counts->sent_back += n;
		turn_back(chain, core, stop, packets, n);
	} else {
		counts->sent += n;
		go_on(chain, core, &chain->stops[stop], packets, n, now_us);
	}
}

static inline bool take_one_way(const struct nf_out *out, uint32_t mask)
{
	const uint32_t key = way_key(out->packets[0], mask);
	uint32_t differ = 0;

	for (uint32_t i = 1; i < out->n; i++)
		differ |= way_key(out->packets[i], mask) ^ key;
	return differ == 0;
}

/*
 * Pass on what a function has sent, in bursts of packets that take the same way: nearly always all
 * of them, which then stay where they are. The function does not run again before this returns. All
 * packets are at `stop`; NO_STOP: each says where it is.
 */
static void dispatch(struct chain *chain, struct place *place, uint16_t stop, uint64_t now_us)
{
	const uint32_t mask = stop == NO_STOP ? WHOLE_WAY : SIDE_AND_GATE;
	struct nf_out *out = &place->out;

	if (likely(out->n > 0 && out->n <= NF_BURST && take_one_way(out, mask))) {
		const uint16_t n = (uint16_t)out->n;

		out->n = 0;
		stop = stop == NO_STOP ? metadata_of(out->packets[0])->stop : stop;
		pass_on(chain, place->core, stop, out->packets, n, now_us);
		return;
	}
	while (out->n > 0) {
		const uint32_t key = way_key(out->packets[0], mask);
		const uint16_t at = stop == NO_STOP ? metadata_of(out->packets[0])->stop : stop;
		struct rte_mbuf *burst[NF_BURST];
		uint32_t left = 0;
		uint16_t n = 0;

		for (uint32_t i = 0; i < out->n; i++) {
			if (n < NF_BURST && way_key(out->packets[i], mask) == key)
				burst[n++] = out->packets[i];
			else
				out->packets[left++] = out->packets[i];
		}
		out->n = left;
		pass_on(chain, place->core, at, burst, n, now_us);
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
	dispatch(chain, place, place->holds ? NO_STOP : stop, now_us);
}

void chain_run_mixed(struct chain *chain, unsigned int core, struct rte_mbuf **packets, uint16_t n,
		     uint64_t now_us)
{
	while (n > 0) {
		const uint32_t key = way_key(packets[0], WHOLE_WAY);
		const uint16_t stop = metadata_of(packets[0])->stop;
		struct rte_mbuf *burst[NF_BURST];
		uint16_t of_stop = 0, left = 0;

		for (uint16_t i = 0; i < n; i++) {
			if (way_key(packets[i], WHOLE_WAY) == key)
				burst[of_stop++] = packets[i];
			else
				packets[left++] = packets[i];
		}
		n = left;
		chain_deliver(chain, core, stop, burst, of_stop, now_us);
	}
}

/* They go on from the stop that turned them. */
void chain_run_backlog(struct chain *chain, unsigned int core, uint64_t now_us)
{
	struct chain_core *of = chain->cores[core];

	while (of->n_backlog > 0) {
		struct rte_mbuf *turned = of->backlog[0];

		of->n_backlog--;
		memmove(of->backlog, of->backlog + 1, of->n_backlog * sizeof(*of->backlog));
		go_on(chain, core, &chain->stops[metadata_of(turned)->stop], &turned, 1, now_us);
	}
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
			dispatch(chain, place, NO_STOP, now_us);
		}
		place->idle = true;
	}
}

/* Run packets from other cores at the time when they entered, those of one time together. */
static void run_timed(struct chain *chain, unsigned int core, struct rte_mbuf **packets, uint16_t n,
		      uint64_t now_us)
{
	uint16_t next;

	for (uint16_t at = 0; at < n; at = next) {
		const uint64_t time_us = metadata_time_us(packets[at], now_us);

		next = at + 1;
		while (next < n && metadata_time_us(packets[next], now_us) == time_us)
			next++;
		chain_run_mixed(chain, core, packets + at, next - at, time_us);
	}
}

unsigned int chain_step(struct chain *chain, unsigned int core, uint64_t now_us)
{
	struct rte_mbuf *packets[NF_BURST];
	unsigned int n =
		rte_ring_dequeue_burst(chain->cores[core]->ring, (void **)packets, NF_BURST, NULL);

	if (n > 0 && chain->config.timed)
		run_timed(chain, core, packets, (uint16_t)n, now_us);
	else if (n > 0)
		chain_run_mixed(chain, core, packets, (uint16_t)n, now_us);
	poll_idle(chain, core, now_us);
	chain_run_backlog(chain, core, now_us);
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

bool chain_is_quiet(const struct chain *chain)
{
	for (unsigned int core = 0; core < chain->n_cores; core++)
		if (!rte_ring_empty(chain->cores[core]->ring))
			return false;
	return true;
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
			dispatch(chain, place, NO_STOP, now_us);
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

uint64_t chain_lost_by(const struct chain *chain, enum chain_loss loss)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < chain->n_cores; i++)
		lost += chain->cores[i]->lost[loss];
	return lost;
}

uint64_t chain_lost(const struct chain *chain)
{
	uint64_t lost = 0;

	for (int loss = 0; loss < CHAIN_LOSSES; loss++)
		lost += chain_lost_by(chain, (enum chain_loss)loss);
	return lost;
}

const char *chain_loss_name(enum chain_loss loss)
{
	static const char *const names[] = {
		[CHAIN_WITHOUT_NSH] = "without_nsh",
		[CHAIN_INVALID_NSH] = "invalid_nsh",
		[CHAIN_UNKNOWN_PATH] = "unknown_path",
		[CHAIN_NO_ROOM] = "no_room",
		[CHAIN_RING_FULL] = "ring_full",
		[CHAIN_TURNED] = "turned",
	};

	return names[loss];
}
