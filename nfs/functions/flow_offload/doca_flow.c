/*
 * Offloads established connections to a BlueField card (DOCA Flow 2.2). It has not run on a card
 * yet: the programs here start DPDK without devices (`--no-pci`) and generate their traffic, so
 * there are no ports. It needs two ports, configured and started.
 *
 * Each port has a root pipe, which passes packets that open or close a connection, and other than
 * TCP and UDP, to the cores, and a pipe of connections for each of TCP and UDP, which forwards and
 * counts known connections and passes the rest to the cores. Rules are added and removed
 * asynchronously: until a rule is active, or if the card rejects it, the cores process the packets.
 */
#include <stdio.h>

#include <rte_ethdev.h>

#include "core/memory.h"
#include "functions/flow_offload/doca_pipes.h"
#include "functions/flow_offload/software.h"

static bool ports_taken;

static void destroy(void *state)
{
	struct doca_connections *card = state;

	doca_stop(card);
	if (card->table)
		software_destroy(card->table);
	nf_free(card->rules);
	nf_free(card);
	__atomic_store_n(&ports_taken, false, __ATOMIC_RELEASE);
}

/* One instance uses both ports; later instances get an error, printed only once. */
static bool take_ports(void)
{
	static bool reported;
	const unsigned int n = rte_eth_dev_count_avail();

	if (n >= DOCA_PORTS && !__atomic_exchange_n(&ports_taken, true, __ATOMIC_ACQUIRE))
		return true;
	if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
		fprintf(stderr,
			"doca-flow: needs %d ports of a card for each FlowTracker; of %u, "
			"none are free\n",
			DOCA_PORTS, n);
	return false;
}

static void *create(uint32_t connections, int socket)
{
	struct doca_connections *card;

	if (!take_ports())
		return NULL;
	card = nf_zalloc(sizeof(*card));
	if (!card) {
		__atomic_store_n(&ports_taken, false, __ATOMIC_RELEASE);
		return NULL;
	}
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

static void lookup(void *state, const void **keys, uint16_t n, int32_t *found)
{
	struct doca_connections *card = state;

	software_lookup(card->table, keys, n, found);
	doca_take_confirmations(card);
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
	struct doca_rules *rules = &card->rules[place];
	struct doca_flow_match match = doca_match(protocol);
	const struct doca_flow_actions none = {0};

	rules->card = card;
	doca_set_key(&match, protocol, key);
	if (!doca_ok(doca_flow_pipe_add_entry(DOCA_QUEUE, card->pipes[port][protocol], &match,
					      &none, NULL, NULL, DOCA_FLOW_NO_WAIT, rules,
					      &rules->entries[port]),
		     "add a connection"))
		return false;
	card->pending++;
	return true;
}

static void withdraw(void *state, uint32_t place)
{
	struct doca_connections *card = state;
	struct doca_rules *rules = &card->rules[place];

	doca_take_confirmations(card);
	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (rules->entries[port] &&
		    doca_ok(doca_flow_pipe_rm_entry(DOCA_QUEUE, DOCA_FLOW_NO_WAIT,
						    rules->entries[port]),
			    "remove a connection"))
			card->pending++;
	*rules = (struct doca_rules){.card = card};
}

static bool forward(void *state, uint32_t place, uint16_t port)
{
	struct doca_connections *card = state;
	const struct flow_key there = software_key(card->table, place);
	const struct flow_key back = flow_reversed(&there);

	doca_take_confirmations(card);
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
		    doca_ok(doca_flow_query_entry(rules->entries[port], &query), "read a counter"))
			packets += query.total_pkts;
	}
	moved = packets != rules->packets;
	rules->packets = packets;
	return moved;
}

static struct flow_offload_backend doca_flow = {
	.name = "doca-flow",
	.help = "a BlueField card forwards established connections",
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
