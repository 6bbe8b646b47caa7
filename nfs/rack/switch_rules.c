/*
 * An OpenFlow switch: another process runs its rules. Each frame goes there over a link, with the
 * port by which it came, and comes back with the one by which it leaves, unless it is dropped.
 */
#include <stdio.h>

#include "rack/switch.h"

/* Taken from a link, or from the world, before others have their turn. */
#define BATCH 32

/* The link to the rules is the last one; port 0 is the world, ports from 1 on are other links. */
static int rules_link(const struct switch_state *state)
{
	return state->options->n_links - 1;
}

static void leave(struct switch_state *state, const struct link_message *message)
{
	if (message->port == 0)
		switch_world_send(state, switch_packet_of(state, message));
	else if (message->port <= rules_link(state))
		state->failed |= !links_send(state->links, message->port - 1, message);
	else
		state->counts.nowhere++;
}

static void take(struct switch_state *state, int link, struct link_message *message)
{
	state->moves++;
	if (message->kind == LINK_FLUSH) {
		state->ports[link + 1].answer = link_round(message);
	} else if (message->kind == LINK_END) {
		fprintf(stderr, "%s: the process at the other end ended before the switch\n",
			state->options->links[link].path);
		state->failed = true;
	} else if (link == rules_link(state)) {
		leave(state, message);
	} else {
		message->port = (uint16_t)(link + 1);
		state->failed |= !links_send(state->links, rules_link(state), message);
	}
}

static void let_in(struct switch_state *state)
{
	for (unsigned int n = 0; n < BATCH && !state->failed; n++) {
		struct rte_mbuf *mbuf = switch_world_next(state);
		struct link_message message;

		if (!mbuf)
			return;
		message = switch_message_of(mbuf);
		state->failed |= !links_send(state->links, rules_link(state), &message);
		rte_pktmbuf_free(mbuf);
	}
}

void switch_rules_run(struct switch_state *state)
{
	const uint64_t moves = state->moves;
	struct link_message message;

	for (int link = 0; link < state->options->n_links; link++)
		for (unsigned int n = 0; n < BATCH && !state->failed &&
					 links_receive(state->links, link, &message);
		     n++)
			take(state, link, &message);
	/* what is inside comes first: else it would wait in ever longer lists */
	if (state->moves == moves)
		let_in(state);
}
