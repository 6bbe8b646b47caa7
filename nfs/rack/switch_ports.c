#include <stdio.h>
#include <time.h>

#include "core/packet.h"
#include "rack/switch.h"
#include "rack/switch_port_stubs.h"

/* Zero bytes behind a packet: a program that reads beyond its end reads the same each time. */
#define ZEROS_BEHIND 128
/* Those that are not there among them. */
#define PORTS_OUT 256

static struct switch_packet *more_of(struct rte_mbuf *mbuf)
{
	return rte_mbuf_to_priv(mbuf);
}

static void enter(struct switch_state *state, struct rte_mbuf *mbuf, struct rte_swx_pkt *packet)
{
	const uint16_t behind =
		(uint16_t)RTE_MIN((uint32_t)rte_pktmbuf_tailroom(mbuf), (uint32_t)ZEROS_BEHIND);

	memset(rte_pktmbuf_mtod_offset(mbuf, char *, mbuf->data_len), 0, behind);
	if (state->has_arrivals) {
		const struct switch_arrival arrival = {rte_cpu_to_be_64(more_of(mbuf)->time_us),
						       rte_cpu_to_be_32(mbuf->data_len)};

		memcpy(rte_pktmbuf_prepend(mbuf, sizeof(arrival)), &arrival, sizeof(arrival));
	}
	fill_packet(mbuf, packet);
	state->in_flight++;
}

/* Whether a packet has more VLAN tags than are skipped: without one it would be another packet. */
static bool has_too_many_tags(const struct rte_mbuf *mbuf)
{
	const uint32_t last = offsetof(struct rte_ether_hdr, ether_type) +
			      PACKET_MOST_TAGS * sizeof(struct rte_vlan_hdr);
	uint32_t at = offsetof(struct rte_ether_hdr, ether_type);

	if (mbuf->data_len < last + sizeof(rte_be16_t))
		return false;
	for (; at <= last; at += sizeof(struct rte_vlan_hdr)) {
		const rte_be16_t type =
			*rte_pktmbuf_mtod_offset(mbuf, const unaligned_uint16_t *, at);

		if (type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) &&
		    type != rte_cpu_to_be_16(RTE_ETHER_TYPE_QINQ))
			return false;
	}
	return true;
}

/* A packet with the bytes of a message. NULL without memory. */
struct rte_mbuf *switch_packet_of(struct switch_state *state, const struct link_message *message)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(state->pool);

	if (!mbuf) {
		fprintf(stderr, "nf-switch: no memory for packets\n");
		state->failed = true;
		return NULL;
	}
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)message->length), message->bytes,
	       message->length);
	more_of(mbuf)->time_us = message->time_us;
	return mbuf;
}

/* The next packet of the interface, at a time that goes on when a clock is set. NULL if none is there. */
static struct rte_mbuf *next_of_interface(struct switch_state *state)
{
	uint32_t length;
	const uint8_t *bytes = interface_receive(state->world_in, &length);
	struct rte_mbuf *mbuf = NULL;
	struct timespec now;

	state->failed |= interface_is_gone(state->world_in);
	state->world_ended = !bytes && state->ending;
	if (bytes) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		mbuf = switch_packet_of(state, &(struct link_message){
						.length = length,
						.time_us = (uint64_t)now.tv_sec * 1000000 +
							   (uint64_t)now.tv_nsec / 1000,
						.bytes = bytes,
					});
	}
	return mbuf;
}

/* The next packet of the capture. NULL at the end. */
static struct rte_mbuf *next_of_capture(struct switch_state *state)
{
	uint64_t time_ns;
	const enum capture_next next = capture_reader_peek(state->in, &time_ns);
	struct rte_mbuf *mbuf;

	state->world_ended = next != CAPTURE_PACKET;
	state->bad |= next == CAPTURE_FAULT;
	if (state->world_ended)
		return NULL;
	mbuf = capture_reader_take(state->in, state->pool);
	state->failed |= !mbuf;
	state->world_ended = !mbuf;
	if (mbuf)
		more_of(mbuf)->time_us = time_ns / 1000;
	return mbuf;
}

/* The next packet from the world that is not malformed. NULL if none is there. */
struct rte_mbuf *switch_world_next(struct switch_state *state)
{
	while (!state->world_ended && !state->paused) {
		struct rte_mbuf *mbuf =
			state->world_in ? next_of_interface(state) : next_of_capture(state);

		if (!mbuf)
			return NULL;
		state->counts.received++;
		state->moves++;
		if (mbuf->nb_segs == 1 && mbuf->pkt_len >= sizeof(struct rte_ether_hdr) &&
		    packet_parse(mbuf).type != PACKET_MALFORMED && !has_too_many_tags(mbuf))
			return mbuf;
		state->counts.malformed++;
		rte_pktmbuf_free(mbuf);
	}
	return NULL;
}

static int receive_from_world(void *port, struct rte_swx_pkt *packet)
{
	struct switch_state *state = ((struct switch_port *)port)->state;
	struct rte_mbuf *mbuf;

	if (state->in_flight >= state->options->in_flight || state->failed || state->bad)
		return 0;
	mbuf = switch_world_next(state);
	if (!mbuf)
		return 0;
	enter(state, mbuf, packet);
	return 1;
}

static int receive_from_link(void *port_pointer, struct rte_swx_pkt *packet)
{
	struct switch_port *port = port_pointer;
	struct switch_state *state = port->state;
	struct link_message message;
	struct rte_mbuf *mbuf;

	if (port->link < 0 || state->in_flight >= state->options->in_flight || state->failed ||
	    !links_receive(state->links, port->link, &message))
		return 0;
	state->moves++;
	if (message.kind == LINK_FLUSH)
		port->answer = link_round(&message);
	if (message.kind == LINK_END) {
		fprintf(stderr, "%s: the process at the other end ended before the switch\n",
			state->options->links[port->link].path);
		state->failed = true;
	}
	mbuf = message.kind == LINK_PACKET ? switch_packet_of(state, &message) : NULL;
	if (!mbuf)
		return 0;
	enter(state, mbuf, packet);
	return 1;
}

/* The packet as it leaves the pipeline; NULL if its length is none of a packet. */
static struct rte_mbuf *left(struct switch_state *state, const struct rte_swx_pkt *packet)
{
	struct rte_mbuf *mbuf = packet->handle;

	state->in_flight--;
	if (packet->length >= sizeof(struct rte_ether_hdr) &&
	    (uint64_t)packet->offset + packet->length <= mbuf->buf_len &&
	    packet->length <= LINK_MOST_BYTES) {
		mbuf->data_off = (uint16_t)packet->offset;
		mbuf->data_len = (uint16_t)packet->length;
		mbuf->pkt_len = packet->length;
		return mbuf;
	}
	if (state->counts.broken++ == 0)
		fprintf(stderr, "nf-switch: the program sends a packet of %u bytes\n",
			packet->length);
	rte_pktmbuf_free(mbuf);
	return NULL;
}

void switch_world_send(struct switch_state *state, struct rte_mbuf *mbuf)
{
	bool sent = true;

	if (!mbuf)
		return;
	if (state->world_out) {
		sent = interface_send(state->world_out, rte_pktmbuf_mtod(mbuf, uint8_t *),
				      mbuf->data_len);
		state->failed |= interface_is_gone(state->world_out);
	} else
		state->failed |= !capture_writer_write(state->out, mbuf,
						       more_of(mbuf)->time_us * 1000, 0);
	*(sent ? &state->counts.sent : &state->counts.unsent) += 1;
	rte_pktmbuf_free(mbuf);
}

static void send_to_world(void *port, struct rte_swx_pkt *packet)
{
	struct switch_state *state = ((struct switch_port *)port)->state;

	switch_world_send(state, left(state, packet));
}

struct link_message switch_message_of(const struct rte_mbuf *mbuf)
{
	return (struct link_message){
		.kind = LINK_PACKET,
		.length = mbuf->data_len,
		.time_us = more_of((struct rte_mbuf *)(uintptr_t)mbuf)->time_us,
		.bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *),
	};
}

static void send_to_link(void *port_pointer, struct rte_swx_pkt *packet)
{
	const struct switch_port *port = port_pointer;
	struct switch_state *state = port->state;
	struct rte_mbuf *mbuf = left(state, packet);
	struct link_message message;

	if (!mbuf)
		return;
	message = switch_message_of(mbuf);
	state->failed |= !links_send(state->links, port->link, &message);
	rte_pktmbuf_free(mbuf);
}

static void drop(void *port, struct rte_swx_pkt *packet)
{
	struct switch_state *state = ((struct switch_port *)port)->state;

	state->in_flight--;
	state->counts.dropped++;
	rte_pktmbuf_free(packet->handle);
}

/* A port that is not there: DPDK does not look whether it is, but writes beyond its memory. */
static void send_nowhere(void *port, struct rte_swx_pkt *packet)
{
	struct switch_state *state = ((struct switch_port *)port)->state;

	if (state->counts.nowhere++ == 0)
		fprintf(stderr, "nf-switch: the program sends a packet to a port beyond %d\n",
			state->options->n_links + 1);
	state->in_flight--;
	rte_pktmbuf_free(packet->handle);
}

static bool register_in(struct switch_state *state, const char *name,
			rte_swx_port_in_pkt_rx_t receive)
{
	struct rte_swx_port_in_ops operations = {port_create, port_destroy, receive, port_no_in_stats};

	return rte_swx_pipeline_port_in_type_register(state->pipeline, name, &operations) == 0;
}

static bool register_out(struct switch_state *state, const char *name,
			 rte_swx_port_out_pkt_tx_t send)
{
	struct rte_swx_port_out_ops operations = {
		.create = port_create,
		.free = port_destroy,
		.pkt_tx = send,
		.pkt_fast_clone_tx = port_no_clone,
		.pkt_clone_tx = port_no_shortened_clone,
		.stats_read = port_no_out_stats,
	};

	return rte_swx_pipeline_port_out_type_register(state->pipeline, name, &operations) == 0;
}

static bool configure(struct switch_state *state)
{
	const uint32_t n = (uint32_t)state->options->n_links + 1;
	struct rte_swx_pipeline *pipeline = state->pipeline;
	bool good = true;

	for (uint32_t i = 0; i <= n; i++)
		state->ports[i] = (struct switch_port){
			.state = state,
			.link = i > 0 && i < n ? (int)i - 1 : -1,
		};
	/* the number of ports in is a power of two: from those without link nothing comes */
	for (uint32_t i = 0; good && i < rte_align32pow2(n); i++)
		good = rte_swx_pipeline_port_in_config(pipeline, i, i ? "from link" : "from world",
						       &state->ports[RTE_MIN(i, n)]) == 0;
	for (uint32_t i = 0; good && i < n; i++)
		good = rte_swx_pipeline_port_out_config(pipeline, i, i ? "to link" : "to world",
							&state->ports[i]) == 0;
	good = good && rte_swx_pipeline_port_out_config(pipeline, n, "drop", &state->ports[n]) == 0;
	for (uint32_t i = n + 1; good && i < PORTS_OUT; i++)
		good = rte_swx_pipeline_port_out_config(pipeline, i, "nowhere",
							&state->ports[n]) == 0;
	return good;
}

bool switch_ports_make(struct switch_state *state)
{
	return register_in(state, "from world", receive_from_world) &&
	       register_in(state, "from link", receive_from_link) &&
	       register_out(state, "to world", send_to_world) &&
	       register_out(state, "to link", send_to_link) && register_out(state, "drop", drop) &&
	       register_out(state, "nowhere", send_nowhere) && configure(state);
}
