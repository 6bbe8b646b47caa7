/*
 * How far TCP streams have been sent, so that what is sent again is noticed. A table of the last
 * streams: one that another one displaced begins again.
 */
#pragma once

#include "core/packet.h"
#include "functions/dedup/siphash.h"

/* Most bytes that a sender goes back; farther back is another connection with the same ports. */
#define STREAMS_MOST_BACK (1u << 24)

struct stream {
	struct flow_key flow;
	uint32_t next; /* sequence number behind the last byte sent */
};

struct streams {
	uint32_t mask;
	struct siphash_key key;
	struct stream *streams;
};

/* Note that a segment is sent; returns whether it begins before the end of what was sent. */
static inline bool streams_sent_again(struct streams *streams, const struct flow_key *flow,
				      uint32_t sequence, uint16_t length)
{
	const uint64_t hash = siphash(&streams->key, (const uint8_t *)flow, sizeof(*flow));
	struct stream *stream = &streams->streams[hash & streams->mask];
	const uint32_t end = sequence + length;

	if (memcmp(&stream->flow, flow, sizeof(*flow)) != 0 ||
	    stream->next - sequence - 1 >= STREAMS_MOST_BACK) {
		stream->flow = *flow;
		stream->next = end;
		return false;
	}
	if (stream->next - end - 1 >= STREAMS_MOST_BACK) /* it has new bytes, too */
		stream->next = end;
	return true;
}
