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
#include <doca_error.h>
#include <doca_flow.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "core/memory.h"
#include "core/packet.h"
#include "functions/flow_offload/software.h"

/* Ports and pipes of a BlueField card that forwards connections (DOCA Flow 2.2). */

#define DOCA_PORTS 2
#define DOCA_QUEUE 0

enum doca_protocol { DOCA_OF_TCP, DOCA_OF_UDP, DOCA_PROTOCOLS };

struct doca_connections;

/* The card's rules of a connection, one per port; NULL if it was rejected. */
struct doca_rules {
	struct doca_connections *card;
	struct doca_flow_pipe_entry *entries[DOCA_PORTS];
	uint64_t packets; /* packets forwarded when it was last queried */
};

struct doca_connections {
	void *table;
	struct doca_rules *rules; /* indexed like the table */
	struct doca_rules own;    /* without a connection */
	struct doca_flow_port *ports[DOCA_PORTS];
	struct doca_flow_pipe *roots[DOCA_PORTS];
	struct doca_flow_pipe *pipes[DOCA_PORTS][DOCA_PROTOCOLS];
	uint32_t pending; /* changes without confirmation */
	uint32_t rejected;
};

/* Whether `answer` is success; otherwise prints `what` failed. */
static bool doca_ok(doca_error_t status, const char *what)
{
	if (status != DOCA_SUCCESS)
		fprintf(stderr, "doca-flow: cannot %s: %s\n", what, doca_get_error_string(status));
	return status == DOCA_SUCCESS;
}

static struct doca_flow_fwd to_cores(void)
{
	static uint16_t queues[] = {DOCA_QUEUE};

	return (struct doca_flow_fwd){
		.type = DOCA_FLOW_FWD_RSS,
		.rss_outer_flags = DOCA_FLOW_RSS_IPV4,
		.rss_queues = queues,
		.num_of_queues = 1,
	};
}

/* A rejected rule does not exist. A full card may reject many; only the first is reported. */
static void confirmed(struct doca_flow_pipe_entry *entry, uint16_t queue,
		      enum doca_flow_entry_status status, enum doca_flow_entry_op op,
		      void *user_context)
{
	struct doca_rules *rules = user_context;
	struct doca_connections *card = rules->card;

	(void)queue;
	if (card->pending > 0)
		card->pending--;
	if (status == DOCA_FLOW_ENTRY_STATUS_SUCCESS)
		return;
	if (card->rejected++ == 0)
		fprintf(stderr, "doca-flow: the card rejected a rule, operation %d\n", (int)op);
	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (op == DOCA_FLOW_ENTRY_OP_ADD && rules->entries[port] == entry)
			rules->entries[port] = NULL;
}

/* Call it before each change: the card's queue has little room for unconfirmed changes. */
static void doca_take_confirmations(struct doca_connections *card)
{
	for (uint16_t port = 0; port < DOCA_PORTS && card->pending > 0; port++)
		doca_ok(doca_flow_entries_process(card->ports[port], DOCA_QUEUE, 0, card->pending),
			"poll for confirmations");
}

/* Start DOCA Flow once per process, with room for the connections of the first instance. */
static bool start_flow(uint32_t connections)
{
	static uint32_t room;
	const struct doca_flow_cfg config = {
		.queues = 1,
		.mode_args = "vnf,hws",
		.resource.nb_counters = DOCA_PORTS * connections,
		.cb = confirmed,
	};

	if (room == 0 && doca_ok(doca_flow_init(&config), "start"))
		room = connections;
	if (room > 0 && room < connections)
		fprintf(stderr, "doca-flow: started for %u connections, %u were requested\n", room,
			connections);
	return connections <= room;
}

/* Start both ports and their pipes. On failure, what was started stays started. */
static bool doca_start(struct doca_connections *card, uint32_t connections)
{
	card->own.card = card;
	if (!start_flow(connections))
		return false;
	for (uint16_t port = 0; port < DOCA_PORTS; port++) {
		char id[8];
		const struct doca_flow_port_cfg named = {
			.port_id = port,
			.type = DOCA_FLOW_PORT_DPDK_BY_ID,
			.devargs = id,
		};

		snprintf(id, sizeof(id), "%u", port);
		if (!doca_ok(doca_flow_port_start(&named, &card->ports[port]), "start a port"))
			return false;
	}
	return doca_ok(doca_flow_port_pair(card->ports[0], card->ports[1]), "pair the ports");
}

static void doca_stop(struct doca_connections *card)
{
	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (card->ports[port]) {
			doca_flow_port_pipes_flush(card->ports[port]);
			doca_ok(doca_flow_port_stop(card->ports[port]), "stop a port");
		}
}

/* A match of a protocol's packets; doca_set_key adds the key of a connection. */
static struct doca_flow_match doca_match(enum doca_protocol protocol)
{
	struct doca_flow_match match = {.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4};

	match.outer.l4_type_ext =
		protocol == DOCA_OF_TCP ? DOCA_FLOW_L4_TYPE_EXT_TCP : DOCA_FLOW_L4_TYPE_EXT_UDP;
	return match;
}

static void doca_set_key(struct doca_flow_match *match, enum doca_protocol protocol,
			 const struct flow_key *key)
{
	match->outer.ip4.src_ip = key->source;
	match->outer.ip4.dst_ip = key->destination;
	if (protocol == DOCA_OF_TCP) {
		match->outer.tcp.l4_port.src_port = key->source_port;
		match->outer.tcp.l4_port.dst_port = key->destination_port;
	} else {
		match->outer.udp.l4_port.src_port = key->source_port;
		match->outer.udp.l4_port.dst_port = key->destination_port;
	}
}

/* The pipe of a protocol's connections for packets received on a port. */
static bool make_pipe(struct doca_connections *card, uint16_t port, enum doca_protocol protocol,
		      uint32_t connections)
{
	const struct flow_key any = {
		.source = UINT32_MAX,
		.destination = UINT32_MAX,
		.source_port = UINT16_MAX,
		.destination_port = UINT16_MAX,
	};
	struct doca_flow_match match = doca_match(protocol);
	struct doca_flow_monitor monitor = {.flags = DOCA_FLOW_MONITOR_COUNT};
	struct doca_flow_actions none = {0}, *actions[] = {&none};
	const struct doca_flow_pipe_cfg config = {
		.attr = {.name = protocol == DOCA_OF_TCP ? "tcp" : "udp",
			 .type = DOCA_FLOW_PIPE_BASIC,
			 .nb_flows = connections,
			 .nb_actions = 1},
		.port = card->ports[port],
		.match = &match,
		.actions = actions,
		.monitor = &monitor,
	};
	const struct doca_flow_fwd out = {.type = DOCA_FLOW_FWD_PORT, .port_id = !port};
	const struct doca_flow_fwd miss = to_cores();

	doca_set_key(&match, protocol, &any);
	return doca_ok(doca_flow_pipe_create(&config, &out, &miss, &card->pipes[port][protocol]),
		       "create a pipe of connections");
}

static bool add_root_rule(struct doca_connections *card, uint16_t port, uint32_t priority,
			  const struct doca_flow_match *match, const struct doca_flow_match *mask,
			  const struct doca_flow_fwd *to)
{
	struct doca_flow_pipe_entry *entry;

	if (!doca_ok(doca_flow_pipe_control_add_entry(DOCA_QUEUE, priority, card->roots[port],
						      match, mask, NULL, NULL, NULL, NULL, to,
						      &card->own, &entry),
		     "add a rule to the root pipe"))
		return false;
	card->pending++;
	return true;
}

/* Packets that open or close a connection go to the cores, and the others if they are unknown. */
static bool fill_root(struct doca_connections *card, uint16_t port)
{
	static const uint8_t flags[] = {DOCA_FLOW_MATCH_TCP_FLAG_SYN, DOCA_FLOW_MATCH_TCP_FLAG_FIN,
					DOCA_FLOW_MATCH_TCP_FLAG_RST};
	const struct doca_flow_match any = {0};
	const struct doca_flow_fwd cores = to_cores();
	bool ok = true;

	for (size_t i = 0; i < RTE_DIM(flags) && ok; i++) {
		struct doca_flow_match match = doca_match(DOCA_OF_TCP);

		match.outer.tcp.flags = flags[i];
		ok = add_root_rule(card, port, 0, &match, &match, &cores);
	}
	for (int protocol = 0; protocol < DOCA_PROTOCOLS && ok; protocol++) {
		const struct doca_flow_match match = doca_match(protocol);
		const struct doca_flow_fwd known = {.type = DOCA_FLOW_FWD_PIPE,
						    .next_pipe = card->pipes[port][protocol]};

		ok = add_root_rule(card, port, 1, &match, &match, &known);
	}
	return ok && add_root_rule(card, port, 2, &any, &any, &cores);
}

static bool doca_make_pipes(struct doca_connections *card, uint16_t port, uint32_t connections)
{
	const struct doca_flow_pipe_cfg config = {
		.attr = {.name = "root", .type = DOCA_FLOW_PIPE_CONTROL, .is_root = true},
		.port = card->ports[port],
	};

	for (int protocol = 0; protocol < DOCA_PROTOCOLS; protocol++)
		if (!make_pipe(card, port, protocol, connections))
			return false;
	return doca_ok(doca_flow_pipe_create(&config, NULL, NULL, &card->roots[port]),
		       "create the root pipe") &&
	       fill_root(card, port);
}

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

static void lookup(void *state, const struct flow_key *keys, uint16_t n, int32_t *found)
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
