/*
 * Packets through a NAT that take more than the fast path: inbound, hairpinned, ICMP, fragmented,
 * and those that begin a session.
 */
#pragma once

#include "core/nf.h"
#include "core/reassembly.h"
#include "functions/nat/pairs.h"
#include "functions/nat/sessions.h"

/* Counters of a NAT; nat.c has their names. */
enum nat_counter {
	OUTWARD,
	INWARD,
	HAIRPINNED,
	ERRORS,
	STARTED,
	AGED,
	EXHAUSTED,
	FULL,
	UNMAPPED,
	FRAGMENTS,
	REASSEMBLED,
	FRAGMENTS_SENT,
	DUPLICATES, /* REASSEMBLY_COUNTERS from here */
	OVERLAPPING,
	EVICTED,
	UNASSEMBLED,
	CONGESTED,
	NO_ROOM,
	UNSUPPORTED,
	OTHER, /* NF_OTHER_COUNTERS from here */
	MALFORMED = OTHER + 2,
};

struct nat {
	struct sessions *sessions;
	struct reassembly *reassembly;
	struct pairs *pairs;
};

/* A packet whose session is to be looked up. */
struct crossing {
	struct rte_mbuf *mbuf;
	struct mapping *mapping; /* of an inbound or hairpinned packet */
	struct packet packet;
	uint16_t largest; /* length of its largest fragment; 0 if it did not arrive in fragments */
};

struct crossings {
	struct crossing of[NF_BURST];
	struct flow_key keys[NF_BURST]; /* in the direction from inside */
	uint16_t n;
};

static inline struct sessions *sessions_of(const struct nf *nf)
{
	const struct nat *nat = nf->state;

	return nat->sessions;
}

/* Add a packet to the lookups, or finish it if it needs none. */
void crossings_add(struct nf *nf, struct crossings *crossings, struct rte_mbuf *mbuf,
		   struct nf_out *out);

/* Translate and send the packets. */
void crossings_send(struct nf *nf, struct crossings *crossings, struct nf_out *out);

/* Translate and send a packet from inside; `place` is that of its session, or negative. */
void crossing_send_outward(struct nf *nf, struct crossing *crossing, const struct flow_key *key,
			   int32_t place, struct nf_out *out);

/* Look up sessions together, so that cache misses overlap; negative where one has timed out. */
void sessions_look_up(struct sessions *sessions, const struct flow_key *keys, uint16_t n,
		      int32_t *places);
