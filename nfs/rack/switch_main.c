/*
 * nf-switch: the emulated switch of a rack, a program of DPDK's SWX pipeline.
 *
 *     nf-switch --spec l2.spec --entries l2.entries --in X.pcap --out Y.pcap --link s0=s0.link
 *
 * When the capture is read and nothing moves, the switch sends a flush on every link, and waits
 * until it comes back behind the packets that it made others send. It ends when nothing moved in
 * several such rounds: a server and its SmartNIC also exchange packets that the switch does not
 * see, and each round moves them on.
 */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "core/clock.h"
#include "core/command_line.h"
#include "rack/entries.h"
#include "rack/spec.h"
#include "rack/switch.h"
#include "run/interruption.h"
#include "run/start.h"

#define PACKETS 255
/* Room in front of a packet is the default headroom: 128 bytes. */
#define PACKET_BYTES (RTE_PKTMBUF_HEADROOM + LINK_MOST_BYTES + 128)
#define INSTRUCTIONS_PER_RUN 256
/* More than a server and its SmartNIC pass a packet to each other in one chain. */
#define QUIET_ROUNDS 8
#define LEAST_ENTRIES 16384u /* of tables that may be replaced */
#define ROUND_PATIENCE_NS 500000000u

/* 0, or an exit status after printing why. */
static int load(struct switch_state *state)
{
	const struct switch_options *options = state->options;
	struct spec *spec = spec_read(options->spec);
	bool built;

	if (!spec)
		return BAD_INPUT;
	if (rte_swx_pipeline_config(&state->pipeline, "switch", 0) != 0 ||
	    !switch_ports_make(state)) {
		fprintf(stderr, "nf-switch: no memory for the pipeline\n");
		spec_free(spec);
		return FAILED;
	}
	/* room for later entries */
	for (unsigned int i = 0; options->control && i < spec->n_tables; i++)
		if (spec->tables[i].kind == SPEC_TABLE)
			spec->tables[i].size = RTE_MAX(spec->tables[i].size, LEAST_ENTRIES);
	state->has_arrivals = spec_has_arrivals(spec);
	built = spec_build(spec, state->pipeline, (unsigned int)options->n_links + 1);
	spec_free(spec);
	if (!built)
		return BAD_INPUT;
	state->control = rte_swx_ctl_pipeline_create(state->pipeline);
	if (!state->control) {
		fprintf(stderr, "nf-switch: no memory for the tables\n");
		return FAILED;
	}
	return !options->entries || entries_load(options->entries, state->pipeline, state->control)
		       ? DONE
		       : BAD_INPUT;
}

static bool is_interface(const char *text)
{
	return strncmp(text, INTERFACE_PREFIX, strlen(INTERFACE_PREFIX)) == 0;
}

/* 0, or an exit status after printing why. */
static int open_ends(struct switch_state *state)
{
	const struct switch_options *options = state->options;

	state->pool = rte_pktmbuf_pool_create("packets", PACKETS, 0, sizeof(struct switch_packet),
					      PACKET_BYTES, SOCKET_ID_ANY);
	state->links = links_create(&interrupted);
	if (!state->pool || !state->links) {
		fprintf(stderr, "nf-switch: no memory for packets\n");
		return FAILED;
	}
	links_stay(state->links, options->control);
	if (is_interface(options->in))
		state->world_in = interface_open(options->in + strlen(INTERFACE_PREFIX), true);
	else
		state->in = capture_reader_open(options->in, "the switch");
	if (!state->in && !state->world_in)
		return BAD_INPUT;
	for (int i = 0; i < options->n_links; i++)
		if (links_open(state->links, options->links[i].path, LINK_A) < 0)
			return BAD_INPUT;
	if (is_interface(options->out))
		state->world_out = interface_open(options->out + strlen(INTERFACE_PREFIX), false);
	else
		state->out = capture_writer_open(options->out, NULL);
	return state->out || state->world_out ? DONE : BAD_INPUT;
}

static uint64_t packets_on_links(const struct switch_state *state)
{
	uint64_t n = 0;

	for (int i = 0; i < state->options->n_links; i++)
		n += links_sent(state->links, i) + links_received(state->links, i);
	return n;
}

/* Rounds of flushing. */
struct rounds {
	uint64_t round, packets; /* packets on links when it began */
	uint64_t begun_ns;
	unsigned int quiet;
};

static bool is_answered(const struct switch_state *state, uint64_t round)
{
	for (int i = 0; i < state->options->n_links; i++)
		if (state->ports[i + 1].answer != round)
			return false;
	return true;
}

/* Nothing moves: begin the next round, or wait for the answers to this one. True at the end. */
static bool go_on(struct switch_state *state, struct rounds *rounds)
{
	const bool answered = is_answered(state, rounds->round);

	/* a device that was started again may have missed the round: then there is another one */
	if (!answered &&
	    !(state->orders.on && clock_ns() - rounds->begun_ns > ROUND_PATIENCE_NS)) {
		state->failed |= !links_idle(state->links);
		return false;
	}
	if (rounds->round > 0)
		rounds->quiet = answered && packets_on_links(state) == rounds->packets
					? rounds->quiet + 1
					: 0;
	if (state->options->n_links == 0 || rounds->quiet == QUIET_ROUNDS)
		return true;
	/* a switch that was started again does not take answers to the one before for its own */
	rounds->round += rounds->round == 0 && state->orders.on ? clock_ns() : 1;
	rounds->begun_ns = clock_ns();
	rounds->packets = packets_on_links(state);
	for (int i = 0; i < state->options->n_links; i++)
		state->failed |= !links_send_flush(state->links, i, rounds->round);
	return false;
}

/* Read the tables of the folder CONTROL_NEXT, and the names of their rules. */
static bool prepare(struct switch_state *state)
{
	const struct switch_options *options = state->options;

	switch_names_free(state->next_names);
	state->next_names =
		options->names ? switch_names_read(CONTROL_NEXT "/switch.names", state->pipeline)
			       : NULL;
	return options->entries && (state->next_names || !options->names) &&
	       entries_prepare(options->entries, CONTROL_NEXT "/switch.entries", state->pipeline,
			       state->control);
}

/* Take what is prepared; all of it, or nothing. */
static bool swap(struct switch_state *state)
{
	const bool taken =
		state->prepared && entries_commit(state->options->entries, state->control);

	state->prepared = false;
	if (taken)
		switch_names_replace(state);
	return taken;
}

/* Do what is ordered; what takes time is answered once it is done. */
static void obey(struct switch_state *state, enum control_order order)
{
	switch (order) {
	case CONTROL_REPORT:
		control_answer(switch_report_write(state, false));
		return;
	case CONTROL_DRAIN:
		state->paused = state->draining = true;
		return;
	case CONTROL_PREPARE:
		state->prepared = prepare(state);
		control_answer(state->prepared);
		return;
	case CONTROL_SWAP:
		control_answer(swap(state));
		return;
	case CONTROL_GO:
		if (state->draining)
			control_answer(false); /* that is given up */
		state->paused = state->draining = false;
		control_answer(true);
		return;
	case CONTROL_END:
		state->paused = false;
		state->ending = true;
		if (state->world_in)
			interface_shut(state->world_in);
		links_stay(state->links, !state->orders.ended);
		return;
	default:
		control_answer(false);
	}
}

/* Nothing moves, and nothing comes from the world for now. True at the end. */
static bool settle(struct switch_state *state, struct rounds *rounds)
{
	if (!go_on(state, rounds))
		return false;
	rounds->quiet = 0;
	if (!state->draining)
		return true;
	state->draining = false;
	control_answer(true);
	return false;
}

static void run(struct switch_state *state)
{
	struct rounds rounds = {0};
	bool over = false, idle = false;

	state->failed |= !links_meet(state->links);
	if (state->options->control && !state->failed)
		control_begin(&state->orders);
	while (!over && !interrupted && !state->failed && !state->bad) {
		const enum control_order order = control_next(&state->orders, idle);
		const uint64_t moves = state->moves;

		if (order != CONTROL_NONE)
			obey(state, order);
		if (state->options->rules)
			switch_rules_run(state);
		else
			rte_swx_pipeline_run(state->pipeline, INSTRUCTIONS_PER_RUN);
		idle = state->moves == moves && state->in_flight == 0;
		if (idle && (state->world_ended || state->draining))
			over = settle(state, &rounds);
		else if (idle && state->orders.on)
			state->failed |= !links_idle(state->links);
	}
	for (int i = 0; over && i < state->options->n_links; i++)
		state->failed |= !links_send_end(state->links, i);
}

static int finish(struct switch_state *state)
{
	/* who is interrupted fails to send or to wait, which is no failure */
	bool keep = !state->bad && (!state->failed || interrupted);

	if (keep)
		keep = switch_report_write(state, interrupted);
	keep &= !state->out || capture_writer_close(state->out, keep);
	if (state->bad)
		return BAD_INPUT;
	return !keep ? FAILED : interrupted ? INTERRUPTED : DONE;
}

/* The program is loaded. */
static int work(struct switch_state *state)
{
	const struct switch_options *options = state->options;
	int result = DONE;

	if (options->names) {
		state->names = switch_names_read(options->names, state->pipeline);
		result = state->names ? DONE : BAD_INPUT;
	}
	if (result == DONE && !options->check) {
		result = open_ends(state);
		if (result == DONE) {
			run(state);
			result = finish(state);
		}
	}
	switch_names_free(state->names);
	switch_names_free(state->next_names);
	capture_reader_close(state->in);
	interface_close(state->world_in);
	interface_close(state->world_out);
	links_destroy(state->links);
	return result;
}

int main(int argc, char **argv)
{
	static struct switch_options options;
	static struct switch_state state = {.options = &options};
	int result = switch_options_read(&options, argc, argv);

	if (result != COMMAND_LINE_READ)
		return result;
	if (start_eal("nf-switch", options.memory_mb) < 0)
		return FAILED;
	catch_interrupts();
	result = options.rules ? DONE : load(&state);
	if (result == DONE)
		result = work(&state);
	/* the pipeline is left to the end of the process: DPDK frees wildcard tables twice */
	rte_mempool_free(state.pool);
	rte_eal_cleanup();
	return result;
}
