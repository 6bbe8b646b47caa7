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
		uint32_t window;    /* the largest that it gave, or 65535 */
		uint8_t scale;      /* 1 more than the shift of its windows; 0 without one */
	} of[2];
	uint32_t refused; /* what was acknowledged in answer to a SYN, and is not due */
	uint8_t known;    /* ends whose numbers are known: a sum of 1 << end */
	bool refuses;
	bool blind; /* a card forwarded packets, whose numbers were not seen */
};

struct segment_numbers {
	uint32_t sequence, acknowledged, end; /* of the bytes, with SYN and FIN */
	uint16_t window;
	uint8_t flags;
	uint8_t scale; /* of a SYN */
};

enum reset { RESET_CLOSES, RESET_CHALLENGED, RESET_OUTSIDE };

static inline bool number_is_due(const struct connection_numbers *numbers, int end, uint32_t number)
{
	return numbers->of[end].high - numbers->of[end].low >= number - numbers->of[end].low;
}

/* Note a window: those of SYN have no scale, and others if both SYN have one (RFC 7323, section 2). */
static inline void numbers_note_window(struct connection_numbers *numbers, int end,
				       const struct segment_numbers *segment)
{
	const bool scaled = numbers->of[0].scale && numbers->of[1].scale &&
			    !(segment->flags & RTE_TCP_SYN_FLAG);
	const uint32_t window = segment->window
				<< (scaled ? (unsigned int)numbers->of[end].scale - 1 : 0);

	numbers->of[end].window = RTE_MAX(numbers->of[end].window, RTE_MAX(window, UINT16_MAX));
}

/* Note a SYN; false if its end's numbers are known. */
static inline bool numbers_begin(struct connection_numbers *numbers, int end,
				 const struct segment_numbers *segment, uint8_t state)
{
	if (state == SYN_SENT)
		*numbers = (struct connection_numbers){.known = 0};
	if (numbers->known & 1 << end)
		return state == SYN_RECEIVED; /* else of an end that lost the connection */
	numbers->of[end].low = segment->sequence + 1;
	numbers->of[end].high = segment->end;
	numbers->of[end].scale = segment->scale;
	numbers->known |= (uint8_t)(1 << end);
	numbers_note_window(numbers, end, segment);
	return true;
}

/* Note a segment from an end that fits the connection's state, which is that behind it. */
static inline void numbers_note(struct connection_numbers *numbers, int end,
				const struct segment_numbers *segment, uint8_t state)
{
	const bool syn = segment->flags & RTE_TCP_SYN_FLAG;
	const bool acknowledges = segment->flags & RTE_TCP_ACK_FLAG && numbers->known & 1 << !end;
	const bool due = acknowledges && number_is_due(numbers, !end, segment->acknowledged);
	const uint32_t before = numbers->of[!end].low - segment->acknowledged;
	uint32_t sent;

	/* what the opener resets, and then still waits (RFC 9293, section 3.10.7.3) */
	if (unlikely(acknowledges && (syn ? !due && !(numbers->known & 1 << end)
					  : state == SYN_SENT))) {
		numbers->refused = segment->acknowledged;
		numbers->refuses = true;
		return;
	}
	if (unlikely(syn) && !numbers_begin(numbers, end, segment, state))
		return;
	if (due)
		numbers->of[!end].low = segment->acknowledged;
	sent = segment->end - numbers->of[end].low;
	/* who does not see the connection knows neither what to acknowledge nor the window */
	if (unlikely(numbers->known != 3 || !acknowledges || (!due && before >= NUMBERS_OLD) ||
		     sent > numbers->of[!end].window))
		return;
	if (sent > numbers->of[end].high - numbers->of[end].low)
		numbers->of[end].high = segment->end;
	numbers_note_window(numbers, end, segment);
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
	if (numbers->refuses && segment->sequence == numbers->refused)
		return RESET_CHALLENGED; /* of another connection, which the other end has */
	return segment->sequence - numbers->of[end].low < NUMBERS_WINDOW ? RESET_CHALLENGED
									  : RESET_OUTSIDE;
}
