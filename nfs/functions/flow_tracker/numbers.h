/*
 * Sequence numbers of a TCP connection, as seen between its ends, by which its ends judge resets
 * (RFC 5961, section 3.2): that with the very number that the other end awaits. Between the ends it
 * is known as one of those from the last one acknowledged to the last one sent.
 */
#pragma once

#include <rte_tcp.h>

#include "functions/flow_tracker/states.h"

/* The largest window (RFC 7323, section 2.3), and how far an old acknowledgement may be behind. */
#define NUMBERS_WINDOW (1u << 30)
#define NUMBERS_OLD (1u << 16)

struct connection_numbers {
	struct {
		uint32_t low, high; /* of what an end sends: acknowledged, and sent */
	} of[2];
	uint8_t known; /* ends whose numbers are known: a sum of 1 << end */
	bool blind;    /* a card forwarded packets, whose numbers were not seen */
};

struct segment_numbers {
	uint32_t sequence, acknowledged, end; /* of the bytes, with SYN and FIN */
	uint8_t flags;
};

enum reset { RESET_CLOSES, RESET_CHALLENGED, RESET_OUTSIDE };

static inline bool number_is_due(const struct connection_numbers *numbers, int end, uint32_t number)
{
	return numbers->of[end].high - numbers->of[end].low >= number - numbers->of[end].low;
}

/* Note a segment from an end that fits the connection's state, which is that behind it. */
static inline void numbers_note(struct connection_numbers *numbers, int end,
				const struct segment_numbers *segment, uint8_t state)
{
	const uint8_t known = numbers->known;
	bool answers = false;

	if (unlikely(segment->flags & RTE_TCP_SYN_FLAG)) {
		if (state != SYN_SENT && state != SYN_RECEIVED)
			return; /* of an end that lost the connection */
		if (state == SYN_SENT)
			*numbers = (struct connection_numbers){.known = 0};
		if (!(numbers->known & 1 << end)) {
			numbers->of[end].low = segment->sequence + 1;
			numbers->of[end].high = segment->end;
			numbers->known |= (uint8_t)(1 << end);
		}
	}
	if ((segment->flags & RTE_TCP_ACK_FLAG) && known & 1 << !end) {
		answers = number_is_due(numbers, !end, segment->acknowledged);
		if (answers)
			numbers->of[!end].low = segment->acknowledged;
		else if (unlikely(state == SYN_SENT)) /* what an old connection awaits */
			numbers->of[!end].low = numbers->of[!end].high = segment->acknowledged;
		answers |= numbers->of[!end].low - segment->acknowledged < NUMBERS_OLD;
	}
	if (unlikely(!answers))
		return; /* anyone may have sent it who does not see the connection */
	if (unlikely(!(known & 1 << end))) {
		numbers->of[end].low = segment->sequence + !!(segment->flags & RTE_TCP_SYN_FLAG);
		numbers->of[end].high = segment->end;
		numbers->known |= (uint8_t)(1 << end);
	} else if (segment->end - numbers->of[end].high - 1 < NUMBERS_WINDOW) {
		numbers->of[end].high = segment->end;
	}
}

/* What the other end makes of a reset from an end. */
static inline enum reset numbers_of_reset(const struct connection_numbers *numbers, int end,
					  const struct segment_numbers *segment)
{
	if (numbers->blind)
		return RESET_CLOSES;
	if (!(numbers->known & 1 << end)) /* it refuses a SYN (RFC 9293, section 3.10.7.3) */
		return segment->flags & RTE_TCP_ACK_FLAG &&
				       number_is_due(numbers, !end, segment->acknowledged)
			       ? RESET_CLOSES
			       : RESET_OUTSIDE;
	if (number_is_due(numbers, end, segment->sequence))
		return RESET_CLOSES;
	return segment->sequence - numbers->of[end].low < NUMBERS_WINDOW ? RESET_CHALLENGED
									  : RESET_OUTSIDE;
}
