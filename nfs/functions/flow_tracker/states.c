#include "functions/flow_tracker/states.h"

#include <rte_tcp.h>

enum tcp_says tcp_says(uint8_t flags)
{
	switch (flags &
		(RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG | RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG)) {
	case RTE_TCP_SYN_FLAG:
		return SAYS_SYN;
	case RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG:
		return SAYS_SYN_ACK;
	case RTE_TCP_ACK_FLAG:
		return SAYS_ACK;
	case RTE_TCP_FIN_FLAG | RTE_TCP_ACK_FLAG:
		return SAYS_FIN;
	case RTE_TCP_RST_FLAG:
	case RTE_TCP_RST_FLAG | RTE_TCP_ACK_FLAG:
		return SAYS_RST;
	default:
		return SAYS_NONSENSE;
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

/* The end that did not begin may answer, or begin at the same time; the other may only repeat. */
static bool step_syn_sent(struct connection_phase *phase, bool opener, enum tcp_says says)
{
	if (opener)
		return says == SAYS_SYN;
	if (says != SAYS_SYN_ACK && says != SAYS_SYN)
		return false;
	phase->state = SYN_RECEIVED;
	return true;
}

static bool step_syn_received(struct connection_phase *phase, uint8_t end, enum tcp_says says)
{
	if (says == SAYS_FIN)
		close_by(phase, end);
	else if (says == SAYS_ACK && end == phase->opener)
		phase->state = ESTABLISHED;
	return true;
}

/*
 * An end that has lost the connection says SYN: the other must see it, to answer with what is then
 * reset (half-open connections, RFC 9293, section 3.5.1).
 */
static bool step_open(struct connection_phase *phase, uint8_t end, enum tcp_says says)
{
	if (says == SAYS_FIN)
		close_by(phase, end);
	else if (says == SAYS_ACK && phase->state == LAST_ACK && end != phase->closer)
		phase->state = TIME_WAIT;
	return says != SAYS_SYN_ACK || end != phase->opener;
}

/* What is over may begin again, from either end. */
static bool step_over(struct connection_phase *phase, uint8_t end, enum tcp_says says)
{
	if (says == SAYS_SYN)
		open_by(phase, end);
	return says != SAYS_SYN_ACK;
}

bool tcp_step(struct connection_phase *phase, uint8_t end, enum tcp_says says)
{
	if (says == SAYS_NONSENSE)
		return false;
	if (phase->state == NO_CONNECTION) {
		if (says == SAYS_SYN)
			open_by(phase, end);
		return says == SAYS_SYN;
	}
	if (says == SAYS_RST) {
		phase->state = CLOSED;
		return true;
	}
	switch (phase->state) {
	case SYN_SENT:
		return step_syn_sent(phase, end == phase->opener, says);
	case SYN_RECEIVED:
		return step_syn_received(phase, end, says);
	case ESTABLISHED:
	case FIN_WAIT:
	case LAST_ACK:
		return step_open(phase, end, says);
	default:
		return step_over(phase, end, says);
	}
}

void udp_step(struct connection_phase *phase, uint8_t end)
{
	if (phase->state == NO_CONNECTION)
		*phase = (struct connection_phase){.state = UDP_NEW, .opener = end};
	else if (end != phase->opener)
		phase->state = UDP_REPLIED;
}
