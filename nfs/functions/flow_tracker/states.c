#include "functions/flow_tracker/states.h"

#include <rte_tcp.h>

enum tcp_kind tcp_kind(uint8_t flags)
{
	switch (flags &
		(RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG | RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG)) {
	case RTE_TCP_SYN_FLAG:
		return TCP_SYN_PACKET;
	case RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG:
		return TCP_SYN_ACK_PACKET;
	case RTE_TCP_ACK_FLAG:
		return TCP_ACK_PACKET;
	case RTE_TCP_FIN_FLAG | RTE_TCP_ACK_FLAG:
		return TCP_FIN_PACKET;
	case RTE_TCP_RST_FLAG:
	case RTE_TCP_RST_FLAG | RTE_TCP_ACK_FLAG:
		return TCP_RST_PACKET;
	default:
		return TCP_INVALID_PACKET;
	}
}

static void open_by(struct connection_phase *phase, uint8_t end)
{
	*phase = (struct connection_phase){.state = SYN_SENT, .opener = end};
}

static void close_by(struct connection_phase *phase, uint8_t end)
{
	if (!(phase->closed & (1 << end)))
		phase->closer = end;
	phase->closed |= (uint8_t)(1 << end);
	phase->state = phase->closed == 3 ? LAST_ACK : FIN_WAIT;
}

/*
 * The responder may reply or open simultaneously; the opener may only retransmit. A responder that
 * has the connection still, which is forgotten here, replies with an acknowledgement alone, and is
 * then reset (half-open connections, RFC 9293, section 3.5.1).
 */
static bool step_syn_sent(struct connection_phase *phase, bool opener, enum tcp_kind kind)
{
	if (opener)
		return kind == TCP_SYN_PACKET;
	if (kind == TCP_ACK_PACKET)
		return true;
	if (kind != TCP_SYN_ACK_PACKET && kind != TCP_SYN_PACKET)
		return false;
	phase->state = SYN_RECEIVED;
	return true;
}

static bool step_syn_received(struct connection_phase *phase, uint8_t end, enum tcp_kind kind)
{
	if (kind == TCP_FIN_PACKET)
		close_by(phase, end);
	else if (kind == TCP_ACK_PACKET && end == phase->opener)
		phase->state = ESTABLISHED;
	return true;
}

/*
 * An end that lost the connection sends SYN: the other end must see it to reply, and is then reset
 * (half-open connections, RFC 9293, section 3.5.1).
 */
static bool step_open(struct connection_phase *phase, uint8_t end, enum tcp_kind kind)
{
	if (kind == TCP_FIN_PACKET)
		close_by(phase, end);
	else if (kind == TCP_ACK_PACKET && phase->state == LAST_ACK && end != phase->closer)
		phase->state = TIME_WAIT;
	return kind != TCP_SYN_ACK_PACKET || end != phase->opener;
}

/* After it is over, either end may open it again. */
static bool step_over(struct connection_phase *phase, uint8_t end, enum tcp_kind kind)
{
	if (kind == TCP_SYN_PACKET)
		open_by(phase, end);
	return kind != TCP_SYN_ACK_PACKET;
}

bool tcp_step(struct connection_phase *phase, uint8_t end, enum tcp_kind kind)
{
	if (kind == TCP_INVALID_PACKET)
		return false;
	if (phase->state == NO_CONNECTION || kind == TCP_RST_PACKET) {
		if (kind == TCP_SYN_PACKET)
			open_by(phase, end);
		return kind == TCP_SYN_PACKET;
	}
	switch (phase->state) {
	case SYN_SENT:
		return step_syn_sent(phase, end == phase->opener, kind);
	case SYN_RECEIVED:
		return step_syn_received(phase, end, kind);
	case ESTABLISHED:
	case FIN_WAIT:
	case LAST_ACK:
		return step_open(phase, end, kind);
	default:
		return step_over(phase, end, kind);
	}
}

void udp_step(struct connection_phase *phase, uint8_t end)
{
	if (phase->state == NO_CONNECTION)
		*phase = (struct connection_phase){.state = UDP_NEW, .opener = end};
	else if (end != phase->opener)
		phase->state = UDP_REPLIED;
}
