/*
 * Established connections forwarded by a BlueField card (DOCA Flow 2.2). It has not run on a card
 * yet.
 *
 * Each of the two ports has a root pipe, which gives the cores what begins or ends a connection and
 * what is neither TCP nor UDP, and a pipe of connections for each of those two, which forwards what
 * it knows to the other port, counted, and gives the cores the rest. Rules are added and removed
 * without waiting for the card: until one is there, the cores see the packets.
 */
#include <stdio.h>

#include <rte_ethdev.h>

#include "core/memory.h"
#include "functions/flow_offload/doca_pipes.h"
#include "functions/flow_offload/software.h"

static void destroy(void *state)
{
	struct doca_connections *card = state;

	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (card->ports[port]) {
			doca_flow_port_pipes_flush(card->ports[port]);
			doca_did(doca_flow_port_stop(card->ports[port]), "stop a port");
		}
	if (card->started)
		doca_flow_destroy();
	if (card->table)
		software_destroy(card->table);
	nf_free(card->rules);
	nf_free(card);
}

static void *create(uint32_t connections, int socket)
{
	struct doca_connections *card;

	if (rte_eth_dev_count_avail() < DOCA_PORTS) {
		fprintf(stderr, "doca-flow: needs %d ports of a card, there are %u\n", DOCA_PORTS,
			rte_eth_dev_count_avail());
		return NULL;
	}
	card = nf_zalloc(sizeof(*card));
	if (!card)
		return NULL;
	card->table = software_create(connections, socket);
	if (card->table)
		card->rules = nf_zalloc(software_places(card->table) * sizeof(*card->rules));
	if (card->rules && doca_start(card, connections) && doca_make_pipes(card, 0, connections) &&
	    doca_make_pipes(card, 1, connections))
		return card;
	destroy(card);
	return NULL;
}

static uint32_t places(const void *state)
{
	return software_places(((const struct doca_connections *)state)->table);
}

/* The card's confirmations are taken here, where a burst comes by. */
static void lookup(void *state, const void **keys, uint16_t n, int32_t *found)
{
	struct doca_connections *card = state;

	software_lookup(card->table, keys, n, found);
	if (card->pending == 0)
		return;
	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		doca_did(doca_flow_entries_process(card->ports[port], DOCA_QUEUE, 0, card->pending),
			 "take confirmations");
}

static int32_t insert(void *state, const struct flow_key *key)
{
	return software_insert(((struct doca_connections *)state)->table, key);
}

static void remove_key(void *state, uint32_t place)
{
	software_remove(((struct doca_connections *)state)->table, place);
}

static bool add_rule(struct doca_connections *card, uint32_t place, uint16_t port,
		     const struct flow_key *key)
{
	const enum doca_protocol protocol =
		key->protocol == IPPROTO_TCP ? DOCA_OF_TCP : DOCA_OF_UDP;
	struct doca_flow_match match = doca_match(protocol);
	const struct doca_flow_actions none = {0};

	doca_set_key(&match, protocol, key);
	if (!doca_did(doca_flow_pipe_add_entry(DOCA_QUEUE, card->pipes[port][protocol], &match,
					       &none, NULL, NULL, DOCA_FLOW_NO_WAIT, &card->pending,
					       &card->rules[place].entries[port]),
		      "add a connection"))
		return false;
	card->pending++;
	return true;
}

static void withdraw(void *state, uint32_t place)
{
	struct doca_connections *card = state;
	struct doca_rules *rules = &card->rules[place];

	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (rules->entries[port] &&
		    doca_did(doca_flow_pipe_rm_entry(DOCA_QUEUE, DOCA_FLOW_NO_WAIT,
						     rules->entries[port]),
			     "remove a connection"))
			card->pending++;
	*rules = (struct doca_rules){0};
}

static bool forward(void *state, uint32_t place, uint16_t port)
{
	struct doca_connections *card = state;
	const struct flow_key there = software_key(card->table, place);
	const struct flow_key back = flow_reversed(&there);

	if (add_rule(card, place, port, &there) && add_rule(card, place, !port, &back))
		return true;
	withdraw(card, place);
	return false;
}

static bool active(void *state, uint32_t place)
{
	struct doca_connections *card = state;
	struct doca_rules *rules = &card->rules[place];
	uint64_t packets = 0;
	bool moved;

	for (uint16_t port = 0; port < DOCA_PORTS; port++) {
		struct doca_flow_query query = {0};

		if (rules->entries[port] &&
		    doca_did(doca_flow_query_entry(rules->entries[port], &query), "read a counter"))
			packets += query.total_pkts;
	}
	moved = packets != rules->packets;
	rules->packets = packets;
	return moved;
}

static struct flow_offload_backend doca_flow = {
	.name = "doca-flow",
	.help = "established connections are forwarded by a BlueField card",
	.preference = 10,
	.create = create,
	.places = places,
	.lookup = lookup,
	.insert = insert,
	.remove = remove_key,
	.destroy = destroy,
	.forward = forward,
	.withdraw = withdraw,
	.active = active,
};

FLOW_OFFLOAD_REGISTER(doca_flow)
