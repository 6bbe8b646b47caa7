/* The ports and pipes of a BlueField card that forward connections (DOCA Flow 2.2). */
#ifndef NFS_FUNCTIONS_FLOW_OFFLOAD_DOCA_PIPES_H
#define NFS_FUNCTIONS_FLOW_OFFLOAD_DOCA_PIPES_H

#include <doca_error.h>
#include <doca_flow.h>

#include "core/packet.h"

#define DOCA_PORTS 2
#define DOCA_QUEUE 0

enum doca_protocol { DOCA_OF_TCP, DOCA_OF_UDP, DOCA_PROTOCOLS };

struct doca_connections;

/* What the card has of a connection: its rules on both ports, NULL where it refused one. */
struct doca_rules {
	struct doca_connections *card;
	struct doca_flow_pipe_entry *entries[DOCA_PORTS];
	uint64_t packets; /* that they have forwarded, when that was last asked */
};

struct doca_connections {
	void *table;
	struct doca_rules *rules; /* by the table's places */
	struct doca_rules own;    /* that of no connection */
	struct doca_flow_port *ports[DOCA_PORTS];
	struct doca_flow_pipe *roots[DOCA_PORTS];
	struct doca_flow_pipe *pipes[DOCA_PORTS][DOCA_PROTOCOLS];
	uint32_t pending; /* changes that the card has not confirmed */
	uint32_t refused;
};

/* Whether what DOCA answered is success; else prints what could not be done. */
bool doca_did(doca_error_t answer, const char *what);

/* A packet of the protocol, and what its key adds to that. */
struct doca_flow_match doca_match(enum doca_protocol protocol);
void doca_set_key(struct doca_flow_match *match, enum doca_protocol protocol,
		  const struct flow_key *key);

/* Start both ports; then the pipes of each. What was started stays so on failure. */
bool doca_start(struct doca_connections *card, uint32_t connections);
bool doca_make_pipes(struct doca_connections *card, uint16_t port, uint32_t connections);
void doca_stop(struct doca_connections *card);

/* Before each change: the card's queue has room for few that it has not confirmed. */
void doca_take_confirmations(struct doca_connections *card);

#endif
