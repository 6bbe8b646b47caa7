/* The parts of nf-server, which plays a server of a rack. */
#pragma once

#include <signal.h>

#include "core/chain.h"
#include "rack/link.h"
#include "rack/server_options.h"

#define SERVER_NAME "nf-server"
#define SERVER_PACKETS 8191

/* Packets freed because of the link, not of the chain. */
enum server_loss {
	SERVER_TOO_LONG,    /* for a slot of the link */
	SERVER_SENT_BACK,   /* by a function, to where the link has no address */
	SERVER_INTERRUPTED, /* could not be sent any more */
	SERVER_LOSSES,
};

struct server_cores;

struct server {
	struct server_options *options;
	struct chain *chain;
	struct server_cores *cores;
	struct accelerator *accelerators[ACCELERATOR_KINDS];
	struct rte_mempool *pool;  /* for packets from the link */
	struct rte_mempool *spare; /* for those that functions make */
	struct links *links;
	int link;
	uint64_t now_us; /* the time of the last packet; other threads read it */
	struct rte_mbuf *buffer; /* for the next packet */
	bool starved;            /* there was none */
	struct rte_mbuf *next;   /* a packet of a later time than the burst before it */
	uint64_t next_us;
	uint64_t lost[SERVER_LOSSES];
	bool broken; /* the link */
};

/* Send packets to the link, and free them; on the thread of core 0. */
void server_send(struct server *server, enum chain_end end, struct rte_mbuf **packets, uint16_t n);

/* Write what was done as one line of JSON. False after printing why. */
bool server_report(const struct server *server, bool interrupted);
