/* Shared by the tests of FlowTracker: a connection, its packets and its states. */
#pragma once

#include "tests/hostile.h"

enum {
	SYN = RTE_TCP_SYN_FLAG,
	ACK = RTE_TCP_ACK_FLAG,
	FIN = RTE_TCP_FIN_FLAG,
	RST = RTE_TCP_RST_FLAG,
	PSH = RTE_TCP_PSH_FLAG,
};

static const struct packet_spec tcp = {.source = RTE_IPV4(10, 0, 0, 9),
				       .destination = RTE_IPV4(10, 0, 0, 2),
				       .source_port = 1000,
				       .destination_port = 80,
				       .protocol = IPPROTO_TCP,
				       .from = NF_INSIDE};

#define CONNECTION_STATE_NAMES 9

/* The counters of connections by state. */
extern const char *const connection_states[CONNECTION_STATE_NAMES];

struct packet_spec reply_to(const struct packet_spec *packet_spec);

/* Offer a packet of the connection, or of its reply direction; returns whether it passed. */
bool passes(struct rig *rig, const struct packet_spec *packet_spec, bool reply, uint8_t flags,
	    uint64_t now_us);

/*
 * Offer a segment of TCP as it is, with this sequence number, in place of the next one of its end,
 * which next_number() returns.
 */
bool passes_at(struct rig *rig, const struct packet_spec *packet_spec, bool reply,
	       uint32_t sequence, uint64_t now_us);
uint32_t next_number(bool reply);

/* The state of the only connection; "none" without one. */
const char *state_now(struct rig *rig);

/* Let time pass without packets of the connection; returns whether it was removed. */
bool forgotten_after(struct rig *rig, uint64_t from_us, double s);
