/*
 * FlowTracker: tracks TCP connections by their flags, and UDP flows by replies. A reset closes a
 * connection only with a sequence number that the other end may await.
 *
 * Connections begin with SYN. Packets that belong to no connection, or do not fit its state, are
 * invalid and freed unless `pass_invalid`; so are packets that open a connection while the table is
 * full, because replies to them would be invalid. A capable card forwards established connections
 * itself; see flow_offload/. ICMP, other protocols and non-initial fragments pass untracked.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_prefetch.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"
#include "core/sweep.h"
#include "functions/flow_offload/offload.h"
#include "functions/flow_tracker/numbers.h"
#include "functions/flow_tracker/states.h"

/* Packets of a burst that belong to a connection or may open one. */

struct candidates {
	struct rte_mbuf *packets[NF_BURST];
	struct flow_key keys[NF_BURST]; /* the same for both directions */
	uint8_t ends[NF_BURST]; /* the sender: 0 if the key is in its direction */
	uint8_t kind[NF_BURST]; /* kind of TCP packet */
	struct segment_numbers numbers[NF_BURST]; /* of a TCP packet */
	uint16_t n;
};

/* The scale of windows among options of TCP, as struct segment_numbers has it (RFC 7323, section 2). */
static __rte_noinline uint8_t window_scale(const uint8_t *option, const uint8_t *end)
{
	enum { END, NOTHING, SCALE = 3, LARGEST = 14 };

	while (option < end && *option != END) {
		if (*option == NOTHING) {
			option++;
			continue;
		}
		if (end - option < 2 || option[1] < 2 || end - option < option[1])
			return 0;
		if (*option == SCALE && option[1] == 3)
			return RTE_MIN(option[2], LARGEST) + 1;
		option += option[1];
	}
	return 0;
}

/* End 0 is the one with the lower address, then port; keys are in its direction. */
static inline void candidates_add(struct candidates *candidates, struct rte_mbuf *mbuf,
				  const struct packet *packet)
{
	const uint16_t at = candidates->n++;
	struct flow_key key;
	bool reversed;

	if (unlikely(packet->type == PACKET_IPV6)) {
		reversed = packet_connection_ipv6(mbuf, packet, &candidates->keys[at]);
	} else {
		key = packet_flow_ipv4(mbuf, packet);
		reversed = key.source > key.destination ||
			   (key.source == key.destination && key.source_port > key.destination_port);
		if (reversed)
			key = flow_reversed(&key);
		candidates->keys[at] = key;
	}
	candidates->packets[at] = mbuf;
	candidates->ends[at] = reversed;
	if (packet->protocol == IPPROTO_TCP) {
		const struct rte_tcp_hdr *tcp =
			rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
		const uint8_t flags = tcp->tcp_flags;
		const uint32_t sequence = rte_be_to_cpu_32(tcp->sent_seq);

		candidates->kind[at] = (uint8_t)tcp_kind(flags);
		candidates->numbers[at] = (struct segment_numbers){
			.sequence = sequence,
			.acknowledged = rte_be_to_cpu_32(tcp->recv_ack),
			.end = sequence + packet->payload_length + (flags & RTE_TCP_FIN_FLAG) +
			       (flags >> 1 & 1), /* SYN */
			.window = rte_be_to_cpu_16(tcp->rx_win),
			.flags = flags,
		};
		if (unlikely(flags & RTE_TCP_SYN_FLAG))
			candidates->numbers[at].scale = window_scale(
				(const uint8_t *)(tcp + 1),
				(const uint8_t *)tcp + packet->payload - packet->l4);
	}
}

enum { CONNECTIONS, OPENING_S, ESTABLISHED_S, CLOSING_S, OVER_S, UDP_NEW_S, UDP_S, PASS_INVALID, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[CONNECTIONS] = {"connections", "capacity of the table", 8, 1 << 22, 1 << 19},
	[OPENING_S] = {"opening_s", "timeout of opening TCP connections, s", 0.001, 86400, 120},
	[ESTABLISHED_S] = {"established_s", "timeout of established TCP connections, s", 0.001,
			   864000, 7440},
	[CLOSING_S] = {"closing_s", "timeout of closing TCP connections, s", 0.001, 86400, 240},
	[OVER_S] = {"over_s", "timeout of closed TCP connections, s", 0.001, 86400, 60},
	[UDP_NEW_S] = {"udp_new_s", "timeout of UDP flows without a reply, s", 0.001, 86400, 30},
	[UDP_S] = {"udp_s", "timeout of UDP flows with a reply, s", 0.001, 86400, 180},
	[PASS_INVALID] = {"pass_invalid",
			  "1: invalid packets pass, and those beyond the table's capacity", 0, 1,
			  0},
	NF_OTHER_PARAMETERS(UNKNOWN, "pass", "pass"),
};

/* Counters of states come first: the number of connections in each. */
#define IN_STATE(state) ((state) - SYN_SENT)

enum {
	TRACKED = IN_STATE(CONNECTION_STATES),
	STARTED,
	RESTARTED,
	AGED,
	FORWARDED,
	INVALID,
	CHALLENGED,
	FULL,
	UNTRACKED,
	OTHER,
	MALFORMED = OTHER + 2,
};
static const struct nf_counter counters[] = {
	[IN_STATE(SYN_SENT)] = {"syn_sent", "connections after a SYN"},
	[IN_STATE(SYN_RECEIVED)] = {"syn_received", "connections after a SYN-ACK"},
	[IN_STATE(ESTABLISHED)] = {"established", "established connections"},
	[IN_STATE(FIN_WAIT)] = {"fin_wait", "connections closed by one end"},
	[IN_STATE(LAST_ACK)] = {"last_ack", "connections closed by both ends"},
	[IN_STATE(TIME_WAIT)] = {"time_wait", "connections in TIME-WAIT"},
	[IN_STATE(CLOSED)] = {"closed", "reset connections"},
	[IN_STATE(UDP_NEW)] = {"udp_new", "UDP flows without a reply"},
	[IN_STATE(UDP_REPLIED)] = {"udp_replied", "UDP flows with a reply"},
	[TRACKED] = {"tracked", "packets of connections"},
	[STARTED] = {"started", "connections opened"},
	[RESTARTED] = {"restarted", "connections opened with the ports of a closed one"},
	[AGED] = {"aged", "connections removed after a timeout"},
	[FORWARDED] = {"forwarded", "connections forwarded by the card"},
	[INVALID] = {"invalid", "packets that do not fit a connection or its state"},
	[CHALLENGED] = {"challenged", "resets that are in the window but not due, sent on"},
	[FULL] = {"full", "packets that open a connection beyond the table's capacity"},
	[UNTRACKED] = {"untracked",
		       "packets of other protocols and non-initial fragments, sent on"},
	NF_OTHER_COUNTERS(OTHER),
};

struct connection {
	uint64_t last_us;
	struct connection_phase phase;
	struct connection_numbers numbers;
	bool offered;   /* given to the card since it was established */
	bool forwarded; /* by the card */
};

struct flow_tracker {
	struct flow_offload offload;
	struct connection *connections; /* indexed like the table */
	uint32_t places;
	uint64_t timeout_us[CONNECTION_STATES];
	struct sweep sweep;
};

static void set_timeouts(struct flow_tracker *tracker, const double *settings)
{
	static const uint8_t parameter_of[CONNECTION_STATES] = {
		[NO_CONNECTION] = OPENING_S,   [SYN_SENT] = OPENING_S, [SYN_RECEIVED] = OPENING_S,
		[ESTABLISHED] = ESTABLISHED_S, [FIN_WAIT] = CLOSING_S, [LAST_ACK] = CLOSING_S,
		[TIME_WAIT] = OVER_S,          [CLOSED] = OVER_S,      [UDP_NEW] = UDP_NEW_S,
		[UDP_REPLIED] = UDP_S,
	};
	uint64_t least = UINT64_MAX;

	for (int state = 0; state < CONNECTION_STATES; state++) {
		tracker->timeout_us[state] = (uint64_t)(settings[parameter_of[state]] * 1e6);
		least = RTE_MIN(least, tracker->timeout_us[state]);
	}
	tracker->sweep = sweep_of(tracker->places, least / 2 + 1);
}

static void destroy(struct nf *nf)
{
	struct flow_tracker *tracker = nf->state;

	flow_offload_destroy(&tracker->offload);
	nf_free(tracker->connections);
}

static int create(struct nf *nf)
{
	const uint32_t capacity = (uint32_t)nf->settings[CONNECTIONS];
	struct flow_tracker *tracker = nf->state;

	if (!flow_offload_create(&tracker->offload, capacity, nf->socket))
		return -ENOMEM;
	tracker->places = tracker->offload.backend->places(tracker->offload.state);
	tracker->connections = nf_zalloc(tracker->places * sizeof(*tracker->connections));
	if (!tracker->connections) {
		fprintf(stderr, "FlowTracker: no memory for %u connections\n", tracker->places);
		return -ENOMEM;
	}
	set_timeouts(tracker, nf->settings);
	return 0;
}

static void withdraw(struct nf *nf, struct flow_tracker *tracker, uint32_t place)
{
	struct connection *connection = &tracker->connections[place];

	if (connection->forwarded) {
		tracker->offload.backend->withdraw(tracker->offload.state, place);
		nf->counters[FORWARDED]--;
	}
	connection->forwarded = connection->offered = false;
}

static void remove_connection(struct nf *nf, struct flow_tracker *tracker, uint32_t place)
{
	struct connection *connection = &tracker->connections[place];

	withdraw(nf, tracker, place);
	tracker->offload.backend->remove(tracker->offload.state, place);
	nf->counters[IN_STATE(connection->phase.state)]--;
	nf->counters[AGED]++;
	*connection = (struct connection){0};
}

/* Remove a connection that was silent for too long, here and on the card; true if it was. */
static bool look_at(struct nf *nf, struct flow_tracker *tracker, uint32_t place)
{
	struct connection *connection = &tracker->connections[place];
	const uint8_t state = connection->phase.state;

	if (state == NO_CONNECTION || nf->now_us - connection->last_us < tracker->timeout_us[state])
		return false;
	if (connection->forwarded &&
	    tracker->offload.backend->active(tracker->offload.state, place)) {
		connection->last_us = nf->now_us;
		return false;
	}
	remove_connection(nf, tracker, place);
	return true;
}

static void age(struct nf *nf, struct flow_tracker *tracker)
{
	for (uint32_t due = sweep_due(&tracker->sweep, nf->now_us); due > 0; due--)
		look_at(nf, tracker, sweep_next(&tracker->sweep));
}

static void read_burst(struct nf *nf, struct rte_mbuf **packets, uint16_t n,
		       struct candidates *candidates, struct nf_out *out)
{
	candidates->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_ip_headers(packets[i]);

		if (likely(packet_ports(packets[i], &packet) != NULL)) {
			candidates_add(candidates, packets[i], &packet);
		} else if (packet_has_flow(&packet)) {
			nf->counters[UNTRACKED]++;
			nf_send(out, packets[i]);
		} else {
			nf_other(nf, packets[i], packet.type, OTHER, out);
		}
	}
}

/* Let the card forward a connection while it is established. */
static void offer(struct nf *nf, struct flow_tracker *tracker, uint32_t place, uint8_t end,
		  uint16_t port)
{
	const struct flow_offload_backend *backend = tracker->offload.backend;
	struct connection *connection = &tracker->connections[place];
	const uint8_t state = connection->phase.state;

	if (state != ESTABLISHED && state != UDP_REPLIED) {
		withdraw(nf, tracker, place);
	} else if (!connection->offered) {
		connection->offered = true;
		connection->forwarded =
			backend->forward(tracker->offload.state, place, end == 0 ? port : !port);
		connection->numbers.blind |= connection->forwarded;
		nf->counters[FORWARDED] += connection->forwarded;
	}
}

static void count_change(struct nf *nf, uint8_t before, uint8_t after)
{
	const bool restarted = before != NO_CONNECTION && after == SYN_SENT;

	nf->counters[RESTARTED] += restarted;
	nf->counters[STARTED] += restarted || before == NO_CONNECTION;
	if (before != NO_CONNECTION)
		nf->counters[IN_STATE(before)]--;
	nf->counters[IN_STATE(after)]++;
}

/* Whether a packet fits its connection, whose state it updates. */
static bool step(struct nf *nf, struct connection *connection, const struct candidates *candidates,
		 uint16_t i)
{
	const uint8_t before = connection->phase.state;
	const uint8_t end = candidates->ends[i];
	const struct segment_numbers *numbers = &candidates->numbers[i];

	if (candidates->keys[i].protocol == IPPROTO_UDP) {
		udp_step(&connection->phase, end);
	} else if (unlikely(candidates->kind[i] == TCP_RST_PACKET && before != NO_CONNECTION)) {
		const enum reset reset = numbers_of_reset(&connection->numbers, end, numbers);

		if (reset == RESET_CHALLENGED)
			nf->counters[CHALLENGED]++;
		if (reset != RESET_CLOSES)
			return reset == RESET_CHALLENGED;
		connection->phase.state = CLOSED;
	} else {
		if (!tcp_step(&connection->phase, end, candidates->kind[i]))
			return false;
		numbers_note(&connection->numbers, end, numbers, connection->phase.state);
	}
	connection->last_us = nf->now_us;
	if (before != connection->phase.state)
		count_change(nf, before, connection->phase.state);
	return true;
}

/* Whether a packet is valid without a connection. */
static bool opens_connection(const struct candidates *candidates, uint16_t i)
{
	struct connection_phase none = {0};

	return candidates->keys[i].protocol == IPPROTO_UDP ||
	       tcp_step(&none, candidates->ends[i], candidates->kind[i]);
}

/* The counter of a packet: TRACKED, INVALID or FULL. */
static int track(struct nf *nf, const struct candidates *candidates, uint16_t i, int32_t place)
{
	struct flow_tracker *tracker = nf->state;
	const struct flow_offload *offload = &tracker->offload;

	if (place < 0) /* finds it where an earlier packet of the burst has opened it */
		place = offload->backend->insert(offload->state, &candidates->keys[i]);
	if (place < 0)
		return opens_connection(candidates, i) ? FULL : INVALID;
	if (!step(nf, &tracker->connections[place], candidates, i)) {
		if (tracker->connections[place].phase.state == NO_CONNECTION)
			offload->backend->remove(offload->state, (uint32_t)place);
		return INVALID;
	}
	if (offload->backend->forward && candidates->keys[i].family != FLOW_IPV6)
		offer(nf, tracker, (uint32_t)place, candidates->ends[i],
		      packet_from(candidates->packets[i]));
	return TRACKED;
}

/*
 * Remove connections that the sweep has not come to: a timeout holds also where packets are few.
 * Then the places of all packets of the burst are to be looked up again.
 */
static void remove_silent(struct nf *nf, struct flow_tracker *tracker, int32_t *places, uint16_t n)
{
	bool removed = false;

	for (uint16_t i = 0; i < n; i++)
		if (likely(places[i] >= 0))
			removed |= look_at(nf, tracker, (uint32_t)places[i]);
	for (uint16_t i = 0; removed && i < n; i++)
		places[i] = -1;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const bool pass_invalid = nf->settings[PASS_INVALID] == 1;
	struct flow_tracker *tracker = nf->state;
	struct candidates candidates;
	int32_t places[NF_BURST];

	age(nf, tracker);
	read_burst(nf, packets, n, &candidates, out);
	if (unlikely(candidates.n == 0))
		return;
	tracker->offload.backend->lookup(tracker->offload.state, candidates.keys, candidates.n,
					 places);
	for (uint16_t i = 0; i < candidates.n; i++)
		rte_prefetch0(
			&tracker->connections[places[i]]); /* harmless for an invalid address */
	remove_silent(nf, tracker, places, candidates.n);
	for (uint16_t i = 0; i < candidates.n; i++) {
		const int counter = track(nf, &candidates, i, places[i]);

		nf->counters[counter]++;
		if (likely(counter == TRACKED || pass_invalid))
			nf_send(out, candidates.packets[i]);
		else
			rte_pktmbuf_free(candidates.packets[i]);
	}
}

NF_KIND("FlowTracker", "tracks TCP and UDP connections", .state_bytes = sizeof(struct flow_tracker),
	.create = create, .process = process, .destroy = destroy)
