/* Ports and pipes of a BlueField card that forwards connections (DOCA Flow 2.2). */
#pragma once

#include <doca_error.h>
#include <doca_flow.h>

#include "core/packet.h"

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
bool doca_ok(doca_error_t status, const char *what);

/* A match of a protocol's packets; doca_set_key adds the key of a connection. */
struct doca_flow_match doca_match(enum doca_protocol protocol);
void doca_set_key(struct doca_flow_match *match, enum doca_protocol protocol,
		  const struct flow_key *key);

/* Start both ports and their pipes. On failure, what was started stays started. */
bool doca_start(struct doca_connections *card, uint32_t connections);
bool doca_make_pipes(struct doca_connections *card, uint16_t port, uint32_t connections);
void doca_stop(struct doca_connections *card);

/* Call it before each change: the card's queue has little room for unconfirmed changes. */
void doca_take_confirmations(struct doca_connections *card);
