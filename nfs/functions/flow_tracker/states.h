/*
 * States of a connection, told by the flags of its packets (RFC 9293, section 3.3.2) as somebody
 * between its ends sees them. Sequence numbers are not looked at.
 */
#ifndef NFS_FUNCTIONS_FLOW_TRACKER_STATES_H
#define NFS_FUNCTIONS_FLOW_TRACKER_STATES_H

#include <stdbool.h>
#include <stdint.h>

enum connection_state {
	NO_CONNECTION,
	SYN_SENT,
	SYN_RECEIVED,
	ESTABLISHED,
	FIN_WAIT, /* one end has closed */
	LAST_ACK, /* both have */
	TIME_WAIT,
	CLOSED, /* reset */
	UDP_NEW,
	UDP_REPLIED,
	CONNECTION_STATES,
};

/* What a TCP packet says, by its flags. */
enum tcp_kind {
	TCP_SYN_PACKET,
	TCP_SYN_ACK_PACKET,
	TCP_ACK_PACKET,
	TCP_FIN_PACKET,
	TCP_RST_PACKET,
	TCP_INVALID_PACKET
};

enum tcp_kind tcp_kind(uint8_t flags);

/* A connection as far as its state goes. */
struct connection_phase {
	uint8_t state;  /* enum connection_state */
	uint8_t closed; /* the ends that have sent FIN: a sum of 1 << end */
	uint8_t opener; /* the end that began: 0 or 1 */
	uint8_t closer; /* the last of those to send its first */
};

/* What a packet from an end (0 or 1) makes of a connection. False, and nothing, if it is invalid.
 */
bool tcp_step(struct connection_phase *phase, uint8_t end, enum tcp_kind kind);
void udp_step(struct connection_phase *phase, uint8_t end);

#endif
