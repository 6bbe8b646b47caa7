#include "functions/flow_offload/doca_pipes.h"

#include <stdio.h>

bool doca_ok(doca_error_t status, const char *what)
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

void doca_take_confirmations(struct doca_connections *card)
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

bool doca_start(struct doca_connections *card, uint32_t connections)
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

void doca_stop(struct doca_connections *card)
{
	for (uint16_t port = 0; port < DOCA_PORTS; port++)
		if (card->ports[port]) {
			doca_flow_port_pipes_flush(card->ports[port]);
			doca_ok(doca_flow_port_stop(card->ports[port]), "stop a port");
		}
}

struct doca_flow_match doca_match(enum doca_protocol protocol)
{
	struct doca_flow_match match = {.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4};

	match.outer.l4_type_ext =
		protocol == DOCA_OF_TCP ? DOCA_FLOW_L4_TYPE_EXT_TCP : DOCA_FLOW_L4_TYPE_EXT_UDP;
	return match;
}

void doca_set_key(struct doca_flow_match *match, enum doca_protocol protocol,
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

bool doca_make_pipes(struct doca_connections *card, uint16_t port, uint32_t connections)
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
