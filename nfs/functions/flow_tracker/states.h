/*
 * States of a TCP connection by the flags of its packets (RFC 9293, section 3.3.2), as seen between
 * its ends. Resets are judged by their numbers, see numbers.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum connection_state {
	NO_CONNECTION,
	SYN_SENT,
	SYN_RECEIVED,
	ESTABLISHED,
	FIN_WAIT, /* one end has closed */
	LAST_ACK, /* both ends have closed */
	TIME_WAIT,
	CLOSED, /* reset */
	UDP_NEW,
	UDP_REPLIED,
	CONNECTION_STATES,
};

/* Kinds of TCP packets by their flags. */
enum tcp_kind {
	TCP_SYN_PACKET,
	TCP_SYN_ACK_PACKET,
	TCP_ACK_PACKET,
	TCP_FIN_PACKET,
	TCP_RST_PACKET,
	TCP_INVALID_PACKET
};

enum tcp_kind tcp_kind(uint8_t flags);

/* The state of a connection. */
struct connection_phase {
	uint8_t state;  /* enum connection_state */
	uint8_t closed; /* ends that have sent FIN: a sum of 1 << end */
	uint8_t opener; /* the end that opened it: 0 or 1 */
	uint8_t closer; /* the end that was last to send its first FIN */
};

/*
 * Update a connection by a packet from an end (0 or 1). False, without a change, if the packet is
 * invalid, or a reset.
 */
bool tcp_step(struct connection_phase *phase, uint8_t end, enum tcp_kind kind);
void udp_step(struct connection_phase *phase, uint8_t end);
